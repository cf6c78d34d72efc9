"""Search over the newest posts: the window they are kept in, the follower that fills it, and the client that asks."""
