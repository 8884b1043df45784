"""What notebooks show of jobs: tables of HTML, also of what cannot be read."""

from __future__ import annotations

from reducers import to_ilist
from tests.jobs.planned import plan_of


def done(ctx, name="a<b"):
    """Return a job that has completed."""
    job = ctx.new_job(plan_of(ctx.stream([1, 2]), to_ilist("out")), name=name)
    job.join()
    return job


def test_a_job_is_shown_with_what_is_known_and_its_stages(ctx):
    """Names are escaped."""
    shown = done(ctx)._repr_html_()

    assert "<td>name</td><td>a&lt;b</td>" in shown
    assert "<td>status</td><td>COMPLETED</td>" in shown
    assert "<th>stage</th><th>items in</th><th>items out</th>" in shown
    assert "<td>sink-1</td><td>2</td><td>2</td>" in shown


def test_metrics_are_shown_as_their_tables(ctx):
    """Below what is known of the job."""
    shown = done(ctx).metrics()._repr_html_()

    assert shown.startswith("<table><caption>a&lt;b: COMPLETED, ")
    assert "<td>source</td><td></td><td>2</td>" in shown


def test_the_jobs_of_a_context_are_a_table_and_a_list(ctx):
    """Newest first; nothing of it is lost for whoever reads the list."""
    jobs = [done(ctx, name) for name in ("first", "second")]
    found = ctx.jobs()

    assert (found, ctx.jobs("first")) == (jobs[::-1], jobs[:1])
    assert found._repr_html_().index("<td>second</td>") < found._repr_html_().index("<td>first</td>")
    assert found._repr_html_().count("<td>COMPLETED</td>") == 2


def test_a_job_whose_record_is_damaged_says_so(connect):
    """The others are shown."""
    ctx, other = connect(), connect()
    damaged, _ = done(ctx, "first"), done(ctx, "second")
    records, place = ctx._jobs._records.all, f"jobs/{damaged.id}/state"
    assert records.write(place, b"{", records.read(place).version + 1)
    shown = other.jobs()._repr_html_()

    assert f"<td>{damaged.id}</td><td></td><td>damaged</td>" in shown
    assert "<td>COMPLETED</td>" in shown
    assert f"the record of the job {damaged.id} is damaged" in other.jobs()[1]._repr_html_()
