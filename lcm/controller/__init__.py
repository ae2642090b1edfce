"""The lablet controller: makes sessions real on CML workers. Imports neither Django nor any app of LCM."""
