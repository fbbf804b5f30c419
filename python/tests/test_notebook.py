"""A notebook, executed by a kernel: functions typed into it, and a job that displays itself."""
import ast

import nbclient
import nbformat
from conftest import WORDS

FUNCTIONS = """
import gristmill
LEAST = 0
def words(line): return ((word, 1) for word in line.split() if len(word) > LEAST)
def total(word, counts): yield word, sum(counts)
"""


def executed(*cells, **options):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return nbclient.NotebookClient(notebook, timeout=60, **options).execute()


def test_functions_of_a_notebook_count_words_and_the_job_shows_its_slots(text):
    done = executed(
        FUNCTIONS,
        f"job = gristmill.run(gristmill.Job(words, total, combiner=total), {str(text)!r}, workers=1)",
        "dict(job)",
    )
    shown = "".join(output["data"].get("text/html", "") for output in done.cells[1].outputs if output.output_type == "display_data")
    assert "<svg" in shown and "succeeded" in shown
    assert ast.literal_eval(done.cells[2].outputs[0]["data"]["text/plain"]) == WORDS


def test_exception_of_a_function_is_one_of_the_notebook(text):
    done = executed(
        FUNCTIONS + "def failing(line): raise ValueError('of ' + line)\n",
        f"gristmill.run(gristmill.Job(failing), {str(text)!r}, workers=1)",
        allow_errors=True,
    )
    error = next(output for output in done.cells[1].outputs if output.output_type == "error")
    assert error.ename == "FunctionError" and "ValueError: of the mill grinds" in error.evalue
