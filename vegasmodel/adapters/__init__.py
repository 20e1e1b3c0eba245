"""One scenario in, one prediction out: which closed form applies, and what it assumes."""
