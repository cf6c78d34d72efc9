"""How posts move: sources, stages, Faust agents, the live view and what people see of it."""
