"""How bytes become events, one file a format."""
