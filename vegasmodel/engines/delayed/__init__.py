"""The fluid's law under feedback delay, and a general integrator that checks it."""
