"""The light simulator: differential equations of continuous windows over one link."""
