"""Each framework's own store beside Holdfast's, measured where the framework is.

``python -m benchmarks.frameworks.<name> FOLDER TURNS`` runs in the environment of the
framework and prints what it measured as JSON; `benchmarks.apart` starts it.
"""
