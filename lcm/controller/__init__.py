"""The lablet controller: runs sessions on CML workers. Imports neither Django nor any LCM app."""
