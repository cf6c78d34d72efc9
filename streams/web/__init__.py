"""What every HTTP server here shares: who may connect, and how long a connection may take to say what it wants."""
