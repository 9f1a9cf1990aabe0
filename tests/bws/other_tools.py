"""Files of judgments as other tools write them: two trials of three items, built after published samples.

Worker w1 saw a, b, c and chose a and c; worker w2 saw b, c, d and chose b and d.
"""

import json
from dataclasses import dataclass, field

from bws.files.qualtrics import encode_tuple

TRIALS = [(("a", "b", "c"), "a", "c", "w1"), (("b", "c", "d"), "b", "d", "w2")]
JUDGED = sorted((frozenset(items), best, worst) for items, best, worst, _ in TRIALS)


@dataclass(frozen=True)
class OtherFile:
    """A file of another tool, and how it is read."""

    tool: str
    columns: str
    """The columns for readers of the documentation."""
    content: str | bytes
    form: str = ""
    """The detected format; empty if the file is refused."""
    parts: dict[str, str] = field(default_factory=dict)
    """Columns to be named with --column."""
    message: str = ""
    """Message of a file that is refused, or of one that needs --column."""
    has_annotators: bool = True
    name: str = "judgments.csv"

    @property
    def reading(self):
        """The cell of the documentation."""
        if not self.form:
            return f"refused: {self.message}"
        options = " ".join(f"--column {role}={name}" for role, name in self.parts.items())
        return f"`{options}`, which the error proposes" if options else "without options"


def rows(template, separator="\n"):
    """Return a line per trial; the template has {a}, {b}, {c}, {best}, {worst}, {other} and {w}."""
    return separator.join(
        template.format(
            a=a, b=b, c=c, best=best, worst=worst, w=w, other=({a, b, c} - {best, worst}).pop()
        )
        for (a, b, c), best, worst, w in TRIALS
    )


def long(header, template):
    lines = [header]
    for number, (items, best, worst, w) in enumerate(TRIALS, start=1):
        for item in items:
            value = int(item == best) - int(item == worst)
            lines.append(template.format(w=w, block=number, item=item, value=value))
    return "\n".join(lines) + "\n"


def radio(*names):
    """Return a row of true and false per trial; best is the first item, worst the last one."""
    answers = ["true,false,false,false,false,true"] * 2
    header = ",".join(f"Answer.{name}" for name in names)
    lines = [
        f"h{n},x{n},{w},Approved,{','.join(items)},{answer}"
        for n, ((items, _, _, w), answer) in enumerate(zip(TRIALS, answers, strict=True))
    ]
    return "\n".join([BATCH + header, *lines]) + "\n"


WORDS = long("Participant,Screen,Statement,Picked", "{w},{block},{item},{value}")
WORDS = WORDS.replace(",-1\n", ",Worst\n").replace(",1\n", ",Best\n").replace(",0\n", ",\n")
MARKS = "RespondentID,Task,Item,Best,Worst\n" + "\n".join(
    f"{w},1,{item},{int(item == best)},{int(item == worst)}"
    for items, best, worst, w in TRIALS
    for item in items
)
BATCH = "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.item1,Input.item2,Input.item3,"
HOLLIS = "group,id,uuid,trial,best_text,worst_text,best,worst,option1\n"
QUALTRICS = "\n".join(
    [
        "Status,ResponseId,giccs_1_best,giccs_1_worst,giccs_1_tuple",
        "Response Type,Response ID,Which is best?,Which is worst?,giccs_1_tuple",
        '"{""ImportId"":""status""}","{""ImportId"":""_recordId""}",x,y,z',
        *(f"0,{w},1,3,{encode_tuple('', '', items)}" for items, _, _, w in TRIALS),
    ]
)
TASKS = [
    {
        "id": number,
        "data": {f"item{n}": item for n, item in enumerate(items, start=1)},
        "annotations": [
            {
                "id": number,
                "completed_by": w,
                "result": [
                    {"from_name": "best", "value": {"choices": ["A"]}},
                    {"from_name": "worst", "value": {"choices": ["C"]}},
                ],
            }
        ],
    }
    for number, (items, _, _, w) in enumerate(TRIALS)
]
TASK_ANSWERS = '"[{""best"":{""1"":true,""2"":false,""3"":false},""worst"":{""label"":""item3""}}]"'
KM = "Item1,Item2,Item3,BestItem,WorstItem\n" + rows("{a},{b},{c},{best},{worst}") + "\n"
CSV = "item1,item2,item3,best,worst,annotator\n" + rows("{a},{b},{c},{best},{worst},{w}") + "\n"
LIME = '"Response ID";"Word A";"Word B";"Word C";"Most similar";"Least similar"\r\n' + rows(
    '"{w}";"{a}";"{b}";"{c}";"{best}";"{worst}"', "\r\n"
)
LIME_ROLES = {
    "items": "Word A,Word B,Word C",
    "best": "Most similar",
    "worst": "Least similar",
    "annotator": "Response ID",
}

FILES = {
    "km": OtherFile(
        "Best-Worst-Scaling scripts", "`Item1…, BestItem, WorstItem`", KM, "km", has_annotators=False
    ),
    "gold": OtherFile(
        "Ruddit: control items under one id", "`Item1…, BestItem, WorstItem`",
        KM + "gold_comment,a,gold_comment,a,gold_comment\n" * 2, "km", has_annotators=False,
    ),
    "semrel": OtherFile(
        "SemRel in Label Studio", "`pair1a, pair1b…, best-pair, worst-pair`",
        "pair1a,pair1b,pair2a,pair2b,pair3a,pair3b,best-pair,worst-pair,annotator\n"
        + rows("{a},,{b},,{c},,A,C,{w}") + "\n", "semrel",
    ),
    "semeval": OtherFile(
        "SemRel-2024, Hindi", "`pair_1…, Most_Related, Least_Related`, positions",
        "pair_1,pair_2,pair_3,Most_Related,Least_Related\n" + rows("{a},{b},{c},1,3") + "\n",
        "semeval", has_annotators=False,
    ),
    "second header": OtherFile(
        "SemRel-2024, Algerian Arabic: a second header in the file", "`SentPair1…, Best, Worst`, positions",
        "SentPair1,SentPair2,SemPair3,Best,Worst\n"
        + rows("{a},{b},{c},1,3", "\nItem1,Item2,Item3,Most related,Least related\n") + "\n",
        "semeval", has_annotators=False,
    ),
    "hollis": OtherFile(
        "Hollis's tools, manual", "`best, worst, option1…` with all items",
        "best,worst,option1,option2,option3,annotator\n" + rows("{best},{worst},{a},{b},{c},{w}") + "\n",
        "hollis",
    ),
    "hollis sample": OtherFile(
        "Hollis's tools, sample data", "`id, trial, best, worst, option1, option2` without the chosen items",
HOLLIS + rows("1,{w},9,0,younger,older,{best},{worst},{other}") + "\n", "hollis",
    ),
    "indiv": OtherFile(
        "bwsTools, indiv", "`id, block, label, value`",
        long("id,block,label,value", "{w},{block}.0,{item},{value}.0"), "long",
    ),
    "vdata": OtherFile(
        "bwsTools, vdata", "`id, block, issue, value`",
        long("id,block,issue,value", "{w},{block},{item},{value}"), "long",
    ),
    "agg": OtherFile(
        "bwsTools, agg", "`pid, trial, character, decision`",
        long("pid,trial,character,decision", "{w},{block},{item},{value}"), "long",
    ),
    "tidy": OtherFile(
        "long form of an own script", "`Participant, Screen, Statement, Picked`",
        long("Participant,Screen,Statement,Picked", "{w},{block},{item},{value}"), "long",
        {"items": "Statement", "value": "Picked", "tuple_id": "Screen", "annotator": "Participant"},
    ),
    "tidy words": OtherFile(
        "long form with words", "`Participant, Screen, Statement, Picked`: Best, Worst or empty",
        WORDS, "long",
        {"items": "Statement", "value": "Picked", "tuple_id": "Screen", "annotator": "Participant"},
    ),
    "marks": OtherFile(
        "a row per item with two marks", "`RespondentID, Task, Item, Best, Worst`, 0 or 1", MARKS,
        message="Best and Worst mark the item of a row; expected one column with 1 (best), -1 (worst) or 0",
    ),
    "lettered": OtherFile(
        "German survey", "`Person; Option A…; Bestes; Schlechtestes`",
        "Person;Option A;Option B;Option C;Bestes;Schlechtestes\n"
        + rows("{w};{a};{b};{c};{best};{worst}") + "\n", "csv",
        {
            "items": "Option A,Option B,Option C", "best": "Bestes", "worst": "Schlechtestes",
            "annotator": "Person",
        },
    ),
    "batch": OtherFile(
        "MTurk batch", "`WorkerId, Input.item1…, Answer.best, Answer.worst`",
        BATCH + "Answer.best,Answer.worst\n" + rows("h,x,{w},Approved,{a},{b},{c},{best},{worst}") + "\n",
        "mturk-batch",
    ),
    "radio": OtherFile(
        "MTurk batch with radio buttons", "`Answer.best.1…, Answer.worst.1…`, true or false",
        radio("best.1", "best.2", "best.3", "worst.1", "worst.2", "worst.3"), "mturk-batch",
    ),
    "most": OtherFile(
        "MTurk batch with radio buttons", "`Answer.most.item1…, Answer.least.item1…`",
        radio(*(f"{role}.item{n}" for role in ("most", "least") for n in (1, 2, 3))), "mturk-batch",
    ),
    "most similar": OtherFile(
        "MTurk batch with radio buttons", "`Answer.most_similar.1…, Answer.least_similar.1…`",
        radio(*(f"{role}_similar.{n}" for role in ("most", "least") for n in (1, 2, 3))), "mturk-batch",
    ),
    "task answers": OtherFile(
        "MTurk batch with crowd elements", "`Answer.taskAnswers`, JSON",
        BATCH + "Answer.taskAnswers\n"
        + "".join(f"{row}{TASK_ANSWERS}\n" for row in rows("h,x,{w},Approved,{a},{b},{c},").split("\n")),
        "mturk-batch",
    ),
    "batch case": OtherFile(
        "MTurk batch saved by another program", "`WORKERID, input.item1…, answer.best, answer.worst`",
        (BATCH + "Answer.best,Answer.worst").replace("WorkerId", "WORKERID").replace("Input.", "input.")
        .replace("Answer.", "answer.") + "\n"
        + rows("h,x,{w},Approved,{a},{b},{c},{best},{worst}") + "\n", "mturk-batch",
    ),
    "qualtrics": OtherFile(
        "Qualtrics, CSV", "`giccs_1_best, giccs_1_worst, giccs_1_tuple…, ResponseId`", QUALTRICS, "qualtrics"
    ),
    "qualtrics tsv": OtherFile(
        "Qualtrics, TSV", "the same, UTF-16 with tabs",
        QUALTRICS.replace(",", "\t").encode("utf-16"), "qualtrics",
    ),
    "label studio": OtherFile(
        "Label Studio, CSV", "`annotation_id, annotator, best, worst, item1…, lead_time`",
        "annotation_id,annotator,best,item1,item2,item3,lead_time,worst\n"
        + rows("1,{w},A,{a},{b},{c},3.5,C") + "\n", "label-studio",
    ),
    "label studio json": OtherFile(
        "Label Studio, JSON", "tasks with annotations", json.dumps(TASKS), "label-studio",
        name="export.json",
    ),
    "wide": OtherFile(
        "PsychoPy, jsPsych and other experiments", "`participant, word1, word2, word3, most, least`",
        "participant,word1,word2,word3,most,least\n" + rows("{w},{a},{b},{c},{best},{worst}") + "\n", "wide",
    ),
    "sep": OtherFile(
        "Excel, first line `sep=;`", "`item1…, best, worst`",
        "sep=;\r\n" + CSV.replace(",", ";").replace("\n", "\r\n"), "csv",
    ),
    "unicode text": OtherFile(
        "Excel, Unicode text (UTF-16 with tabs)", "`item1…, best, worst`",
        CSV.replace(",", "\t").encode("utf-16"), "csv",
    ),
    "big endian": OtherFile(
        "UTF-16, big-endian", "`item1…, best, worst`", b"\xfe\xff" + CSV.encode("utf-16-be"), "csv"
    ),
    "windows": OtherFile(
        "Excel, CSV in Windows-1252", "`item1…, best, worst`",
        CSV.replace("a", "ä").encode("cp1252"),
        message="byte 0xe4 is not UTF-8; save the file as UTF-8 (in Excel: CSV UTF-8)",
    ),
    "header case": OtherFile(
        "spreadsheet with spaces and capitals", "`Item 1…, BEST , Worst, Worker ID`",
        CSV.replace("item", " Item ").replace("best", "BEST ").replace("annotator", "Worker ID"), "csv",
    ),
    "joined": OtherFile(
        "files joined with `cat`", "`item1…, best, worst`, header repeated",
        CSV.replace("\nb,c,d", "\n\ufeff" + CSV.partition("\n")[0] + "\nb,c,d"), "csv",
    ),
    "joined otherwise": OtherFile(
        "files joined with `cat`", "a header in another order",
        CSV.replace("\nb,c,d", "\nitem1,item2,item3,worst,best,annotator\nb,c,d"),
        message="repeats the header with the columns in another order",
    ),
    "pandas": OtherFile(
        "pandas, index without a name", "`, item1…, best, worst`",
        "\n".join(f"{n},{line}" for n, line in enumerate(CSV.splitlines())).replace("0,item1", ",item1"),
        "csv",
    ),
    "lime": OtherFile(
        "LimeSurvey", "`Response ID; Word A…; Most similar; Least similar`", LIME.encode("utf-8-sig"), "csv",
        LIME_ROLES,
    ),
    "support.BWS": OtherFile(
        "support.BWS", "`ID, B1, W1, B2, W2…` without the items",
        "ID,B1,W1,B2,W2\n1,1,3,2,3\n2,2,3,1,2\n", message="match no format of judgments",
    ),
    "mixed options": OtherFile(
        "Hollis's tools, two forms in one file", "`best, worst, option1, option2`",
        "best,worst,option1,option2\na,c,b,d\na,b,a,b\n",
        message="best or worst is one of the options in 1 rows (first line 3), but neither is in 1",
    ),
}  # fmt: skip
