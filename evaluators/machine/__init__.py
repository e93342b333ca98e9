"""What this machine can do at most, measured: the physics that no kernel beats."""
