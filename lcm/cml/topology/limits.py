"""Limits of a topology. Text limits follow CML's schema; link labels and titles may be longer."""

MAX_NODES = 1_000
MAX_LINKS = 10_000
MAX_INTERFACES = 256  # per node
MAX_TAGS = 64  # per node

# Characters
MAX_TAG = 64
MAX_ID = 64
MAX_NODE_NAME = 128  # a kernel stores the label and the node definition of its node
MAX_INTERFACE_LABEL = 128
MAX_LINK_LABEL = 300
MAX_TITLE = 250
MAX_DESCRIPTION = 4_096
MAX_NOTES = 32_768
