"""What a user declares: models, hardware, workload, engine, pipeline and the scenario itself."""
