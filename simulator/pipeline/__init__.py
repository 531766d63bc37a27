"""The RL loop as SimPy processes: batches, controller, trainer, weight sync, placement."""
