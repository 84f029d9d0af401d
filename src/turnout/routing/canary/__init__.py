"""The canary router: a small, sticky share of lanes goes to another router while the host watches how it does."""
