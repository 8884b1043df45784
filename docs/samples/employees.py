"""Group, average, divide and sum up employees, as tutorials of `java.util.stream` do.

python docs/samples/employees.py
"""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass

import dstream as ds
from collectors import averaging, counting, grouping_by, joining, mapping, max_by, partitioning_by, teeing


@dataclass(frozen=True)
class Employee:
    """Someone who works in a department, for a salary."""

    name: str
    department: str
    salary: int


STAFF = [
    Employee("Ada", "Engines", 9_400),
    Employee("Grace", "Compilers", 9_900),
    Employee("Edsger", "Engines", 8_700),
    Employee("Barbara", "Compilers", 10_200),
    Employee("Tony", "Sorting", 8_100),
    Employee("Frances", "Compilers", 9_100),
]


def main() -> None:
    """Print what a payroll office asks for."""
    with ds.connect(engine=os.environ.get("DSTREAM_ENGINE", "local")) as ctx:
        staff = ctx.stream(STAFF)
        per_head = teeing(
            counting(), averaging(lambda e: e.salary), lambda n, mean: f"{n} people, {mean:,.0f} on average"
        )

        print("departments")
        for department, summary in staff.collect(grouping_by(lambda e: e.department, per_head)).items():
            print(f"  {department}: {summary}")

        print("best paid")
        best = staff.collect(grouping_by(lambda e: e.department, max_by(lambda e: e.salary)))
        for department, employee in best.items():
            print(f"  {department}: {employee.map(lambda e: e.name).or_else('nobody')}")

        names = mapping(lambda e: e.name, joining(", "))
        sides = staff.sorted(key=lambda e: e.name).collect(partitioning_by(lambda e: e.salary > 9_000, names))
        print(f"above 9,000: {sides[True]}")
        print(f"the others: {sides[False]}")

        salaries = staff.map_to_int(lambda e: e.salary)
        statistics = salaries.summary_statistics()
        print(f"salaries from {statistics.min:,} to {statistics.max:,}, {statistics.average:,.0f} on average")
        print(f"payroll: {salaries.reduce(0, operator.add):,}")


if __name__ == "__main__":
    main()
