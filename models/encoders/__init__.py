"""What makes vectors: the Encoder protocol, the back-ends behind it, and the bundles and registries they come from."""
