"""The Faust worker, one file an agent. The only folder that imports Faust."""
