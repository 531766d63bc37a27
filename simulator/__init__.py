"""rollcast: what an RL post-training run of a large language model costs, before it is run."""
