"""The whole header: what it is, its sizes, how a row becomes bits, what clauses make of them, which class wins."""

from __future__ import annotations

import keyword
import re
from math import prod

from laconic.export.c.encode import count_step, count_words, find_nesting, write_encoder
from laconic.export.c.scores import list_machines, write_scores
from laconic.export.c.tables import call_after, define, quote, wrap
from laconic.export.c.values import Values
from laconic.models.machines import Ballot
from laconic.models.portable import About, PortableModel

START = """/* A personal model as C99 (and C++11): include it in one file; it allocates nothing and needs no library.

       name_value row[NAME_VALUES] = {{...}};        a raw row, as the data set has them: {shape}
       int label = name_predict(row);              name_class_names[label] is what it is called
       name_score scores[NAME_CLASSES];
       name_scores(row, scores);                   the higher the likelier; NAME_NEVER: not to be chosen

   {about}
   Found equal to the model in Python on {n_rows} rows before it was written. */
#ifndef NAME_H
#define NAME_H

#include <float.h>
#include <stdint.h>

"""

PREDICT = """
/* The class with the highest score, the first of several. */
static inline int name_predict(const name_value *row)
{
    name_score scores[NAME_CLASSES];
    int label, best = 0;
    name_scores(row, scores);
    for (label = 1; label < NAME_CLASSES; label++)
        if (scores[label] > scores[best])
            best = label;
    return best;
}

#endif
"""


def write_header(portable: PortableModel, values: Values, name: str, n_rows: int) -> str:
    check_name(name)
    about, shape = portable.about, list_machines(portable.model)[0].shape
    is_whole = isinstance(portable.model, Ballot)
    start = START.format(shape=" x ".join(map(str, about.input_shape)), about=describe(about), n_rows=n_rows)
    sizes = define(
        classes=len(about.classes),
        values=prod(about.input_shape),
        words=count_words(shape),
        step=count_step(shape),
        never="INT32_MIN" if is_whole else "(-DBL_MAX)",
    )
    types = f"\ntypedef {values.ctype} name_value;\ntypedef {'int32_t' if is_whole else 'double'} name_score;\n"
    names = (
        f"static const char *const name_class_names[NAME_CLASSES] = {{\n{wrap([*map(quote, about.classes)])}\n}};\n\n"
    )
    encoder = "/* From a raw row to packed bits. */\n" + write_encoder(portable.preprocessing, about, shape, values)
    scores = write_scores(portable.model, find_nesting(portable.preprocessing, shape))
    return call_after(name, start + sizes + types + names + encoder + "\n" + scores + PREDICT)


def describe(about: About) -> str:
    client = f"client {about.client}" + (f" ({about.name})" if about.name else "")
    text = f"{about.method}, {client}, {about.data}, seed {about.seed}, {about.rounds} rounds; "
    text += f"run {about.run[:16]}, laconic {about.laconic}"
    return re.sub(r"[^ -~]|\*", "?", text)  # a file may come from anybody: nothing in it may end the comment


def check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        raise ValueError(f"name is {name!r}; functions of the header begin with it: give a word such as model")
