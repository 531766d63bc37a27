"""A scenario that runs in a fraction of a second, and ways to change it."""

from simulator.specs.scenario import Scenario

SMALL = {
    "schema_version": 1,
    "name": "small",
    "model": "Qwen3-8B",
    "cluster": {"gpus": 4, "hardware": "gb200"},
    "workload": {
        "prompts_per_step": 8,
        "samples_per_prompt": 4,
        "prompt_length": {"kind": "fixed", "tokens": 100},
        "response_length": {"kind": "lognormal", "mean": 800, "sigma": 0.7},
        "within_group_correlation": 0.3,
        "max_response_tokens": 4096,
    },
    "engine": {"tensor_parallel": 1},
    "speculation": {"method": "eagle3", "draft_length": 3, "acceptance_length": 2.8},
    "steps": 3,
    "seeds": 2,
    "baseline": {"speculation.method": "none"},
}


def small(**changes):
    """The small scenario with dotted paths (``a__b=1``) replaced."""
    document = {
        key: dict(value) if isinstance(value, dict) else value for key, value in SMALL.items()
    }
    for path, value in changes.items():
        *above, last = path.split("__")
        at = document
        for key in above:
            at = at.setdefault(key, {})
        if value is ...:
            at.pop(last, None)
        else:
            at[last] = value
    return Scenario.model_validate(document)
