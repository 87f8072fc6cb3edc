"""Tests the tables of a report."""

from multihorizon.reports.sections import ReportContents


def test_the_best_score_of_each_row_is_bold(made: ReportContents) -> None:
    (table,) = [table for section in made.sections for table in section.tables if table.name == "scores"]
    ranked = made.scores.find_comparable(full_length=False)
    agents = [agent for agent, span in table.groups for _ in range(span)]
    compared = [i for i, agent in enumerate(agents, start=1) if agent in ranked]
    assert len(compared) < len(agents)  # the paper's scores are not compared, because the paper's runs are longer
    for statistic in ("best", "last 5"):
        places = [i for i in compared if table.columns[i] == statistic]
        for row in table.rows:
            values = {i: row[i].value for i in places if isinstance(row[i].value, float)}
            assert [i for i in places if row[i].bold] == [max(values, key=lambda i: values[i])]
