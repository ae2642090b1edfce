"""Names of all demo objects. The demo's processes ignore other pools and definitions."""

from pathlib import Path

POOLS = ("cml-eu", "cml-us")
SPOT_POOL = "cml-us"
TOPOLOGIES = Path(__file__).parent / "topologies"
DEFINITIONS = tuple(sorted(path.stem for path in TOPOLOGIES.glob("*.yaml")))
VERSION = "1.0"
# Projects by domain
ORGANISATION: dict[str, dict[str, str]] = {
    "academy": {"ccna-spring": "Entry course, evening groups", "ccnp-core": "Professional course"},
    "partners": {"sdwan-enable": "Enablement of resellers", "security-day": "Workshops on one day"},
    "research": {"ipv6-lab": "Transition studies", "automation": "Model-driven programmability"},
}
STUDENTS_A_PROJECT = 4


def students_of(project: str) -> list[str]:
    """Return the user names of a project's students."""
    return [f"{project}-{number:02}" for number in range(1, STUDENTS_A_PROJECT + 1)]


PROJECTS = tuple(name for projects in ORGANISATION.values() for name in projects)
STUDENTS = tuple(student for project in PROJECTS for student in students_of(project))
