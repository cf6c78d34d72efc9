"""Places by name: which are called so (`gazetteer`), and which a text names (`mentions`)."""
