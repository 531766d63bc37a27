"""Errors of published cases as tables: ``python -m simulator.validation.tables megatron``."""

import sys
from collections.abc import Sequence

from simulator.errors import RollcastError
from simulator.validation.cases import Case, Role
from simulator.validation.sources import validation_cases
from simulator.validation.summary import summary_of

_HEADER = (
    "| source | role | subject | rows | median | 90th percentile | bias | inside 95% |",
    "|---|---|---|---|---|---|---|---|",
)


def error_table(cases: Sequence[Case]) -> str:
    """Markdown table of the errors by source, role and first word of the case; and of each role.

    The bias is the median of the signed error, ``projected / published - 1``.
    """
    groups: dict[tuple[str, Role, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.source, case.role, case.case.split()[0]), []).append(case)
        groups.setdefault((case.source, case.role, "all"), []).append(case)
    lines = [_line(*key, members) for key, members in sorted(groups.items())]
    return "\n".join((*_HEADER, *lines))


def case_table(cases: Sequence[Case]) -> str:
    """Markdown table of every case."""
    lines = ["| case | role | measured | projected | error |", "|---|---|---|---|---|"]
    lines += [
        f"| {case.case} | {case.role} | {case.published:,.4g} | {case.projected:,.4g} | "
        f"{case.relative_error:+.0%} |"
        for case in cases
    ]
    return "\n".join(lines)


def _line(source: str, role: Role, subject: str, cases: Sequence[Case]) -> str:
    found = summary_of(source, cases[0].metric, role, cases)
    return (
        f"| {source} | {role} | {subject} | {found.cases} | {found.median_error:.1%} | "
        f"{found.p90_error:.1%} | {found.bias:+.1%} | {found.inside_share:.0%} |"
    )


def main(arguments: Sequence[str]) -> int:
    """Print the errors of these sources; with ``--cases`` every case."""
    sources = [name for name in arguments if name != "--cases"]
    try:
        cases = validation_cases(sources)
    except RollcastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    table = case_table(cases) if "--cases" in arguments else error_table(cases)
    sys.stdout.write(table + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
