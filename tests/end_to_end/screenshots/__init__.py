"""Screenshots of the demo: every page for review, and the images of the guide."""
