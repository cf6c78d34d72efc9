"""Everything in Redis: the live view, folding, what workers say of themselves, and the clusterer's snapshots."""
