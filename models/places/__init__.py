"""Places by name: which are called so (`gazetteer`), which is meant (`meant`), and which a text names (`mentions`)."""
