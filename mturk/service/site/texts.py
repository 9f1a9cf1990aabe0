"""What the site says, in German and English, and how it writes money, durations and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from babel.numbers import format_currency

__all__ = ["LANGUAGES", "TEXTS", "choose_language", "clock", "duration", "iso", "money", "text"]

LANGUAGES = {"de": "Deutsch", "en": "English"}

TEXTS: Mapping[str, tuple[str, str]] = {
    # key: (German, English); "one|many" where {n} counts
    "site": ("Annotationsstudien", "Annotation studies"),
    "skip": ("Zum Inhalt springen", "Skip to content"),
    "nav": ("Hauptnavigation", "Main navigation"),
    "nav.language": ("Sprache", "Language"),
    "nav.work": ("Aufgaben", "Tasks"),
    "nav.history": ("Mein Stand", "My progress"),
    "nav.qualifications": ("Qualifikationen", "Qualifications"),
    "nav.messages": ("Nachrichten", "Messages"),
    "nav.leave": ("Abmelden", "Leave"),
    "nav.you": ("Angemeldet als {worker}", "Signed in as {worker}"),
    "back.work": ("Zu den Aufgaben", "Back to the tasks"),
    "rehearsal": (
        "Probebetrieb: Dieser Dienst läuft nur auf diesem Rechner, und jede Kennung wird ohne Prüfung "
        "angenommen.",
        "Rehearsal: this service runs on this computer only, and every ID is accepted without a check.",
    ),
    # entering
    "enter.title": ("Anmelden", "Sign in"),
    "enter.closed": (
        "Sie brauchen Ihren persönlichen Link oder den Einladungslink der Studie, um hier zu arbeiten. "
        "Wenn Sie "
        "einen Link bekommen haben, öffnen Sie ihn bitte noch einmal.",
        "You need your personal link, or the study's invitation link, to work here. If you were sent a link, "
        "please open it again.",
    ),
    "enter.open": (
        "Geben Sie eine beliebige Kennung ein. Jede Kennung ist eine eigene Person mit eigenen Aufgaben.",
        "Enter any ID. Each ID is a person of its own, with tasks of its own.",
    ),
    "enter.worker": ("Kennung", "Worker ID"),
    "enter.worker.hint": (
        "Ein A und danach Großbuchstaben und Ziffern, zum Beispiel AREHEARSAL1.",
        "An A, then capital letters and digits, for example AREHEARSAL1.",
    ),
    "enter.worker.bad": (
        "Diese Kennung geht nicht: Sie muss mit A beginnen, dann folgen 1 bis 63 Großbuchstaben oder "
        "Ziffern.",
        "This ID does not work: it must start with A, followed by 1 to 63 capital letters or digits.",
    ),
    "enter.button": ("Weiter", "Continue"),
    "start.title": ("Bevor es losgeht", "Before you start"),
    "start.country": ("In welchem Land leben Sie?", "In which country do you live?"),
    "start.country.hint": (
        "Manche Aufgaben sind nur für Personen aus bestimmten Ländern.",
        "Some tasks are only for people from certain countries.",
    ),
    "start.country.choose": ("Bitte wählen", "Please choose"),
    "start.country.bad": ("Bitte wählen Sie ein Land aus.", "Please choose a country."),
    "start.consent": (
        "Ich habe die Informationen gelesen, nehme freiwillig teil und bin damit einverstanden, dass meine "
        "Antworten für die Forschung gespeichert und ausgewertet werden.",
        "I have read the information, take part voluntarily and agree that my answers are stored and "
        "analysed for research.",
    ),
    "start.consent.bad": (
        "Ohne Ihr Einverständnis können Sie nicht teilnehmen.",
        "You cannot take part without giving your consent.",
    ),
    "start.information": (
        "Gespeichert werden Ihre Kennung, Ihr Land, Ihre Antworten und deren Uhrzeit. Sie können "
        "jederzeit ohne "
        "Angabe von Gründen aufhören; eine angefangene Aufgabe geben Sie dann bitte zurück.",
        "Your ID, your country, your answers and their times are stored. You may stop at any time without "
        "giving a reason; please return a task that you have begun.",
    ),
    "start.button": ("Beginnen", "Start"),
    # offers
    "work.title": ("Verfügbare Aufgaben", "Available tasks"),
    "work.open": ("Angefangene Aufgaben", "Tasks you have begun"),
    "work.resume": ("Weiterarbeiten", "Continue working"),
    "work.none": (
        "Zurzeit gibt es keine Aufgaben für Sie. Schauen Sie später wieder vorbei.",
        "There are no tasks for you at the moment. Please come back later.",
    ),
    "work.reward": ("Vergütung", "Reward"),
    "work.count": ("Verfügbar", "Available"),
    "work.tasks": ("{n} Aufgabe|{n} Aufgaben", "{n} task|{n} tasks"),
    "work.time": ("Zeit", "Time allowed"),
    "work.keywords": ("Stichwörter", "Keywords"),
    "work.unmet": ("Ihnen fehlt dafür noch:", "What you still lack for this:"),
    "work.preview": ("Ansehen", "Preview"),
    "work.preview.of": ("Ansehen: {title}", "Preview: {title}"),
    "work.accept": ("Annehmen", "Accept"),
    "work.accept.of": ("Annehmen: {title}", "Accept: {title}"),
    "preview.title": ("Vorschau", "Preview"),
    "preview.note": (
        "Dies ist eine Vorschau. Nehmen Sie die Aufgabe an, um zu antworten; vorher kann nichts "
        "abgesendet werden.",
        "This is a preview. Accept the task to answer it; nothing can be submitted before that.",
    ),
    "preview.hint": (
        "Vorschau: Nehmen Sie die Aufgabe an, bevor Sie absenden.",
        "Preview: accept the task before you submit.",
    ),
    "question": ("Die Aufgabe", "The task"),
    "question.frame": ("Frage: {title}", "Question: {title}"),
    # working
    "working.left": ("Noch", "Time left"),
    "working.until": ("bis {time} Uhr", "until {time}"),
    "working.return": ("Zurückgeben", "Return"),
    "working.return.hint": (
        "Zurückgegebene Aufgaben bekommt jemand anders; Ihre Antworten darin gehen verloren.",
        "A returned task goes to somebody else; your answers in it are lost.",
    ),
    "working.automatic": (
        "Danach gleich die nächste Aufgabe annehmen", "Accept the next task right afterwards",
    ),
    "working.continue": ("Abgesendet? Weiter", "Submitted? Continue"),
    "working.minutes": ("Noch 5 Minuten.", "5 minutes left."),
    "working.minute": ("Noch 1 Minute.", "1 minute left."),
    "working.over": (
        "Die Zeit ist abgelaufen. Diese Aufgabe kann nicht mehr abgesendet werden.",
        "Time is up. This task can no longer be submitted.",
    ),
    "working.not_yet": (
        "Diese Aufgabe ist noch nicht abgesendet. Bitte benutzen Sie den Knopf zum Absenden in der Aufgabe.",
        "This task has not been submitted yet. Please use the submit button inside the task.",
    ),
    "working.returned": ("Die Aufgabe ist zurückgegeben.", "The task has been returned."),
    "working.returned.title": ("Und jetzt?", "What next?"),
    "working.next": ("Nächste Aufgabe", "Next task"),
    "working.received": (
        "Vielen Dank, Ihre Antwort ist angekommen.", "Thank you, your answer has been received.",
    ),
    "working.received.none": (
        "Vielen Dank, Ihre Antwort ist angekommen. Weitere Aufgaben dieser Art gibt es zurzeit nicht für "
        "Sie.",
        "Thank you, your answer has been received. There are no more tasks of this kind for you at the "
        "moment.",
    ),
    # what the frame answers
    "submit.done": ("Ihre Antwort ist angekommen", "Your answer has been received"),
    "submit.again": (
        "Diese Antwort war schon angekommen", "This answer had already been received",
    ),
    "submit.again.text": (
        "Es gilt, was Sie zuerst abgesendet haben; nichts wurde geändert.",
        "What you submitted first counts; nothing was changed.",
    ),
    "submit.next": (
        "Wenn es nicht von selbst weitergeht, benutzen Sie bitte den Knopf „Abgesendet? Weiter“ auf "
        "dieser Seite.",
        "If nothing happens by itself, please use the button “Submitted? Continue” on this page.",
    ),
    "submit.wrong": ("Noch nicht abgesendet", "Not submitted yet"),
    "submit.wrong.text": (
        "An der Antwort fehlt noch etwas. Gehen Sie zurück; Ihre Angaben stehen noch da.",
        "Something is missing from the answer. Go back; your answers are still there.",
    ),
    "submit.details": ("Was nicht stimmt", "What is wrong"),
    "submit.back": ("Zurück zur Aufgabe", "Back to the task"),
    "submit.refused": ("Nicht angenommen", "Not accepted"),
    # record
    "history.title": ("Mein Stand", "My progress"),
    "history.submitted": ("Abgesendet", "Submitted"),
    "history.approved": ("Angenommen", "Approved"),
    "history.pending": ("Noch offen", "Pending"),
    "history.rejected": ("Abgelehnt", "Rejected"),
    "history.earned": ("Verdient", "Earned"),
    "history.table": ("Meine letzten Aufgaben", "My most recent tasks"),
    "history.task": ("Aufgabe", "Task"),
    "history.when": ("Abgesendet am", "Submitted at"),
    "history.status": ("Stand", "Status"),
    "history.feedback": ("Rückmeldung", "Feedback"),
    "history.none": ("Sie haben noch nichts abgesendet.", "You have not submitted anything yet."),
    "status.Submitted": ("noch offen", "pending"),
    "status.Approved": ("angenommen", "approved"),
    "status.Rejected": ("abgelehnt", "rejected"),
    "messages.title": ("Nachrichten", "Messages"),
    "messages.none": ("Sie haben keine Nachrichten.", "You have no messages."),
    # qualifications
    "qualifications.title": ("Qualifikationen", "Qualifications"),
    "qualifications.none": (
        "Zurzeit können Sie keine Qualifikation beantragen.",
        "There is no qualification that you can request at the moment.",
    ),
    "qualifications.request": ("Beantragen", "Request"),
    "qualifications.request.of": ("Beantragen: {title}", "Request: {title}"),
    "qualifications.test": ("Test machen", "Take the test"),
    "qualifications.test.of": ("Test machen: {title}", "Take the test: {title}"),
    "qualifications.send": ("Test absenden", "Submit the test"),
    "qualifications.granted": ("Sie haben die Qualifikation jetzt.", "You now have the qualification."),
    "qualifications.pending": (
        "Ihr Antrag ist gestellt; die Studienleitung entscheidet darüber.",
        "Your request has been made; the researchers will decide on it.",
    ),
    "qualifications.have": ("Sie haben diese Qualifikation.", "You have this qualification."),
    "qualifications.no": (
        "Sie können diese Qualifikation zurzeit nicht beantragen.",
        "You cannot request this qualification at the moment.",
    ),
    "qualifications.asked": (
        "Beantragt; die Entscheidung steht aus.", "Requested; the decision is pending.",
    ),
    # the end of a study
    "finished.title": ("Geschafft, vielen Dank!", "Finished, thank you!"),
    "finished.text": (
        "Sie sind mit dieser Studie fertig. Ihr Abschlusscode ist:",
        "You have completed this study. Your completion code is:",
    ),
    "finished.back": ("Zurück zu Prolific und abschließen", "Return to Prolific and complete"),
    "finished.back.other": ("Zurück und abschließen", "Return and complete"),
    "finished.nothing.title": ("Keine Aufgaben mehr", "No tasks left"),
    "finished.nothing": (
        "Zurzeit gibt es in dieser Studie keine Aufgabe für Sie. Sie haben nichts abgesendet und müssen "
        "nichts "
        "weiter tun. Bitte geben Sie Ihren Platz dort frei, wo Sie herkommen (auf Prolific: „Return "
        "submission“).",
        "There is no task for you in this study at the moment. You have submitted nothing and need not do "
        "anything. Please give up your place where you came from (on Prolific: “Return submission”).",
    ),
    # a QuestionForm
    "form.submit": ("Absenden", "Submit"),
    "form.required": ("(Pflichtfeld)", "(required)"),
    "form.length": ("{low} bis {high} Zeichen.", "{low} to {high} characters."),
    "form.length.from": ("Mindestens {low} Zeichen.", "At least {low} characters."),
    "form.length.to": ("Höchstens {high} Zeichen.", "At most {high} characters."),
    "form.choices": ("Wählen Sie {low} bis {high}.", "Choose {low} to {high}."),
    "form.choices.to": ("Wählen Sie höchstens {high}.", "Choose at most {high}."),
    "form.choices.exact": ("Wählen Sie genau {low}.", "Choose exactly {low}."),
    "form.other": ("Anderes, und zwar", "Other, namely"),
    "form.upload": (
        "Hier wird eine Datei verlangt. Dieser Dienst nimmt keine Dateien an; diese Frage kann nicht "
        "beantwortet werden.",
        "A file is asked for here. This service takes no files; this question cannot be answered.",
    ),
    "form.missing": ("„{name}“ ist noch nicht beantwortet.", "“{name}” has not been answered."),
    "form.short": (
        "„{name}“ hat {n} Zeichen; verlangt sind {low} bis {high}.",
        "“{name}” has {n} characters; {low} to {high} are allowed.",
    ),
    "form.number": (
        "„{name}“ muss eine Zahl von {low} bis {high} sein.",
        "“{name}” must be a number from {low} to {high}.",
    ),
    "form.selections": (
        "Bei „{name}“ sind {n} Antworten gewählt; verlangt sind {low} bis {high}.",
        "“{name}” has {n} choices; {low} to {high} are allowed.",
    ),
    "form.foreign": (
        "Bei „{name}“ steht eine Antwort, die nicht zur Wahl steht.",
        "“{name}” has an answer that is not one of the choices.",
    ),
    # errors
    "error.title": ("Das geht nicht", "That does not work"),
    "error.request": ("Kennung der Anfrage: {id}", "Request ID: {id}"),
    "error.link": (
        "Dieser Link ist nicht gültig oder abgelaufen. Öffnen Sie ihn bitte noch einmal genau so, wie Sie "
        "ihn "
        "bekommen haben, oder fragen Sie die Studienleitung.",
        "This link is not valid or has expired. Please open it again exactly as you were given it, or ask "
        "the researchers.",
    ),
    "error.csrf": (
        "Dieses Formular ist veraltet. Bitte gehen Sie zurück, laden Sie die Seite neu und versuchen Sie es "
        "noch einmal.",
        "This form is out of date. Please go back, reload the page and try again.",
    ),
    "error.not_found": ("Diese Seite gibt es nicht.", "There is no such page."),
    "error.method": ("So kann diese Seite nicht aufgerufen werden.", "This page cannot be called that way."),
    "error.often": (
        "Das waren zu viele Anfragen. Bitte warten Sie {n} Sekunde.|"
        "Das waren zu viele Anfragen. Bitte warten Sie {n} Sekunden.",
        "Too many requests. Please wait {n} second.|Too many requests. Please wait {n} seconds.",
    ),
    "error.server": (
        "Auf dem Server ist etwas schiefgegangen. Bitte versuchen Sie es noch einmal.",
        "Something went wrong on the server. Please try again.",
    ),
    "error.not_a_form": ("Das war kein Formular.", "That was not a form."),
    "error.too_large": (
        "Das ist zu viel auf einmal: höchstens 1 MB und 1000 Felder.",
        "That is too much at once: 1 MB and 1000 fields at most.",
    ),
    "error.files": (
        "Dieser Dienst nimmt keine Dateien an. Gehen Sie zurück und senden Sie die Antwort ohne Datei ab.",
        "This service takes no files. Go back and submit the answer without a file.",
    ),
    "error.preview": (
        "In der Vorschau kann nichts abgesendet werden. Nehmen Sie die Aufgabe zuerst an.",
        "Nothing can be submitted in the preview. Please accept the task first.",
    ),
    "error.no_token": (
        "Diese Antwort lässt sich keiner Aufgabe zuordnen. Sie muss an die Adresse gehen, die die Seite als "
        "turkSubmitTo bekommt.",
        "This answer cannot be matched with a task. It must go to the address that the page is given as "
        "turkSubmitTo.",
    ),
    "error.NoWork": (
        "Davon gibt es zurzeit keine Aufgabe für Sie.", "There is no such task for you at the moment.",
    ),
    "error.NotEligible": (
        "Sie erfüllen die Voraussetzungen für diese Aufgabe nicht.",
        "You do not meet this task’s requirements.",
    ),
    "error.AlreadyDone": ("Diese Aufgabe haben Sie schon bearbeitet.", "You have already done this task."),
    "error.Full": (
        "Diese Aufgabe ist inzwischen an andere vergeben.", "This task has been taken by others meanwhile.",
    ),
    "error.Expired": (
        "Die Zeit für diese Aufgabe ist abgelaufen.", "The time for this task is over.",
    ),
    "error.Blocked": (
        "Sie können für diese Studienleitung zurzeit nicht arbeiten. Bei Fragen wenden Sie sich bitte an "
        "sie.",
        "You cannot work for these researchers at present. Please contact them if you have questions.",
    ),
    "error.NotYours": ("Diese Seite gibt es nicht.", "There is no such page."),
    "error.Closed": (
        "Diese Aufgabe ist nicht mehr offen.", "This task is no longer open.",
    ),
    "error.Unknown": ("Diese Seite gibt es nicht.", "There is no such page."),
}  # fmt: skip


def text(language: str, key: str, **values: object) -> str:
    """Return a text; with ``n`` it is the singular or the plural.

    >>> text("en", "work.tasks", n=1), text("de", "work.tasks", n=2)
    ('1 task', '2 Aufgaben')
    """
    found = TEXTS[key][0 if language == "de" else 1]
    if "|" in found:
        one, many = found.split("|")
        found = one if values["n"] == 1 else many
    return found.format(**values)


def choose_language(accepted: str) -> str:
    """Return the language that a browser's Accept-Language prefers: German or English.

    >>> choose_language("fr, de-AT;q=0.8, en;q=0.3"), choose_language(""), choose_language("en, de")
    ('de', 'en', 'en')
    """
    wanted: dict[str, float] = {}
    for part in accepted.lower().split(","):
        tag, _, weight = part.strip().partition(";q=")
        language = tag.split("-")[0]
        if language in LANGUAGES:
            wanted[language] = max(wanted.get(language, 0.0), _weight(weight))
    best = max(wanted.values(), default=0.0)
    return next((name for name, weight in wanted.items() if weight == best > 0), "en")


def _weight(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0


def money(language: str, amount: Decimal) -> str:
    """Write US dollars, with cents.

    >>> money("en", Decimal("1234.5")), money("de", Decimal("0.25"))
    ('$1,234.50', '0,25\\xa0$')
    """
    return format_currency(amount, "USD", locale=language)


def iso(seconds: float) -> str:
    """Write a time for machines.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(seconds: float, language: str) -> str:
    """Write a time for people without scripts; with them it becomes the local one.

    >>> clock(0, "de"), clock(0, "en")
    ('01.01.1970 00:00 UTC', '1970-01-01 00:00 UTC')
    """
    pattern = "%d.%m.%Y %H:%M UTC" if language == "de" else "%Y-%m-%d %H:%M UTC"
    return datetime.fromtimestamp(seconds, UTC).strftime(pattern)


UNITS: Sequence[tuple[int, str, str, str, str]] = (
    (86_400, "Tag", "Tage", "day", "days"),
    (3_600, "Stunde", "Stunden", "hour", "hours"),
    (60, "Minute", "Minuten", "minute", "minutes"),
    (1, "Sekunde", "Sekunden", "second", "seconds"),
)


def duration(language: str, seconds: int) -> str:
    """Write a duration in its two largest units.

    >>> [duration("en", n).replace("\xa0", " ") for n in (5400, 1800, 45)]
    ['1 hour 30 minutes', '30 minutes', '45 seconds']
    """
    first = 1 if language == "de" else 3
    parts = []
    for unit in UNITS:
        count, seconds = divmod(seconds, unit[0])
        if count:
            parts.append(f"{count}\u00a0{unit[first] if count == 1 else unit[first + 1]}")
    return " ".join(parts[:2]) or f"0\u00a0{UNITS[-1][first + 1]}"
