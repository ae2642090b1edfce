"""Pictures of the demo: every page for those who look it over, and those of the guide."""
