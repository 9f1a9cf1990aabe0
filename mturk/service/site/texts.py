"""Texts of the site in German and English, and formatting of money, durations and times."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from babel.numbers import format_currency, format_decimal

__all__ = [
    "LANGUAGES",
    "TEXTS",
    "choose_language",
    "clock",
    "duration",
    "error_title",
    "iso",
    "money",
    "number",
    "text",
]

LANGUAGES = {"de": "Deutsch", "en": "English"}

TEXTS: Mapping[str, tuple[str, str]] = {
    # key: (German, English); "one|many" where {n} counts
    "site": ("Annotationsstudien", "Annotation studies"),
    "skip": ("Zum Inhalt springen", "Skip to content"),
    "nav": ("Hauptnavigation", "Main navigation"),
    "nav.language": ("Sprache", "Language"),
    "nav.work": ("Aufgaben", "Tasks"),
    "nav.history": ("Mein Fortschritt", "My progress"),
    "nav.qualifications": ("Qualifikationen", "Qualifications"),
    "nav.messages": ("Nachrichten", "Messages"),
    "nav.withdraw": ("Teilnahme widerrufen", "Withdraw"),
    "nav.leave": ("Abmelden", "Sign out"),
    "nav.you": ("Angemeldet als {worker}", "Signed in as {worker}"),
    "back.work": ("Zu den Aufgaben", "Back to the tasks"),
    "rehearsal": (
        "Probebetrieb: Dieser Dienst ist nur auf diesem Rechner erreichbar, und jede Kennung wird "
        "ohne Prüfung angenommen.",
        "Dry run: this service is only reachable from this computer, and every ID is accepted "
        "without verification.",
    ),
    # entering
    "enter.title": ("Anmelden", "Sign in"),
    "enter.closed": (
        "Für die Anmeldung brauchen Sie Ihren persönlichen Link oder den Einladungslink der Studie. "
        "Wenn Sie einen Link erhalten haben, öffnen Sie ihn bitte noch einmal.",
        "You need your personal link or the invitation link of the study to sign in. If you received "
        "a link, please open it again.",
    ),
    "enter.open": (
        "Geben Sie eine beliebige Kennung ein. Jede Kennung steht für eine eigene Person mit eigenen "
        "Aufgaben.",
        "Enter any ID. Each ID represents a separate person with separate tasks.",
    ),
    "enter.worker": ("Kennung", "Worker ID"),
    "enter.worker.hint": (
        "Ein Buchstabe, gefolgt von Buchstaben und Ziffern, zum Beispiel anna1.",
        "A letter, followed by letters and digits, for example anna1.",
    ),
    "enter.worker.bad": (
        "Diese Kennung ist ungültig. Sie muss mit einem Buchstaben (A–Z) beginnen, gefolgt von höchstens "
        "63 Buchstaben, Ziffern, Punkten, Unter- oder Bindestrichen.",
        "This ID is not valid. It must start with a letter (A–Z), followed by at most 63 letters, digits, "
        "dots, underscores or hyphens.",
    ),
    "enter.button": ("Weiter", "Continue"),
    "start.title": ("Bevor es losgeht", "Before you start"),
    "start.country": ("In welchem Land leben Sie?", "In which country do you live?"),
    "start.country.hint": (
        "Einige Aufgaben sind nur für Personen aus bestimmten Ländern verfügbar.",
        "Some tasks are only available to people from certain countries.",
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
        "Gespeichert werden Ihre Kennung, Ihr Land, Ihre Antworten und deren Zeitpunkte. Sie können "
        "jederzeit ohne Angabe von Gründen aufhören; eine begonnene Aufgabe geben Sie dann bitte "
        "zurück.",
        "Your ID, your country, your answers and their times are stored. You may stop at any time "
        "without giving a reason; please return any task that you have started.",
    ),
    "start.information.no_country": (
        "Gespeichert werden Ihre Kennung, Ihre Antworten und deren Zeitpunkte. Sie können jederzeit ohne "
        "Angabe von Gründen aufhören; eine begonnene Aufgabe geben Sie dann bitte zurück.",
        "Your ID, your answers and their times are stored. You may stop at any time without giving a "
        "reason; please return any task that you have started.",
    ),
    "start.information.volunteers": (
        "Gespeichert werden Ihr Name in der Studie, Ihre Antworten und deren Zeitpunkte. Sie können "
        "jederzeit ohne Angabe von Gründen aufhören.",
        "Your name in the study, your answers and their times are stored. You may stop at any time without "
        "giving a reason.",
    ),
    "start.confirm.volunteers": ("Sie nehmen als {worker} teil.", "You take part as {worker}."),
    "join.title": ("Willkommen", "Welcome"),
    "join.text": (
        "Wählen Sie einen Namen, unter dem Sie teilnehmen. Es muss nicht Ihr eigener sein. Mit demselben "
        "Namen und in diesem Browser können Sie später weitermachen.",
        "Choose a name under which you take part. It need not be your own. With the same name and in this "
        "browser you can continue later.",
    ),
    "join.name": ("Name in der Studie", "Name in the study"),
    "join.name.hint": (
        "Ein Buchstabe (a–z), gefolgt von Buchstaben und Ziffern, zum Beispiel anna1.",
        "A letter (a–z), followed by letters and digits, for example anna1.",
    ),
    "join.bad": (
        "Dieser Name ist ungültig. Er muss mit einem Buchstaben (a–z) beginnen, gefolgt von höchstens 63 "
        "Buchstaben, Ziffern, Punkten, Unter- oder Bindestrichen.",
        "This name is not valid. It must start with a letter (a–z), followed by at most 63 letters, digits, "
        "dots, underscores or hyphens.",
    ),
    "join.taken": (
        "Dieser Name ist schon vergeben. Bitte wählen Sie einen anderen; wenn es Ihrer ist, öffnen Sie den "
        "Link im selben Browser wie beim ersten Mal.",
        "This name is already taken. Please choose another one; if it is yours, open the link in the same "
        "browser as the first time.",
    ),
    "start.expected": (
        "Die Studie besteht aus {n} Aufgabe und dauert etwa {time}.|Die Studie besteht aus {n} Aufgaben und "
        "dauert etwa {time}.",
        "The study consists of {n} task and takes about {time}.|The study consists of {n} tasks and takes "
        "about {time}.",
    ),
    "start.decline": ("Ich bin nicht einverstanden", "I do not agree"),
    "start.optional": ("(freiwillig)", "(optional)"),
    "start.question.bad": ("Bitte beantworten Sie diese Frage.", "Please answer this question."),
    "start.number.bad": ("Bitte geben Sie eine ganze Zahl ein.", "Please enter a whole number."),
    "start.number.range": (
        "Bitte geben Sie eine ganze Zahl von {low} bis {high} ein.",
        "Please enter a whole number from {low} to {high}.",
    ),
    "start.button": ("Beginnen", "Start"),
    "start.confirm": (
        "Dieser Link meldet Sie als {worker} an. Fahren Sie nur fort, wenn Sie ihn selbst erhalten haben.",
        "This link signs you in as {worker}. Continue only if you received it yourself.",
    ),
    "start.same": ("Sie sind als {worker} angemeldet.", "You are signed in as {worker}."),
    "start.replaces": (
        "Sie sind zurzeit als {worker} angemeldet und werden dabei abgemeldet.",
        "You are currently signed in as {worker} and will be signed out.",
    ),
    # offers
    "work.title": ("Verfügbare Aufgaben", "Available tasks"),
    "work.open": ("Begonnene Aufgaben", "Tasks in progress"),
    "work.resume": ("Weiterarbeiten", "Continue working"),
    "work.none": (
        "Zurzeit gibt es keine Aufgaben für Sie. Bitte schauen Sie später wieder vorbei.",
        "There are no tasks for you at the moment. Please come back later.",
    ),
    "work.reward": ("Vergütung", "Reward"),
    "work.count": ("Verfügbar", "Available"),
    "work.tasks": ("{n} Aufgabe|{n} Aufgaben", "{n} task|{n} tasks"),
    "work.hourly": ("{amount} pro Stunde", "{amount} per hour"),
    "work.expected": ("Dauer", "Duration"),
    "work.about": ("etwa {time}", "about {time}"),
    "work.time": ("Zeitlimit", "Time limit"),
    "work.keywords": ("Stichwörter", "Keywords"),
    "work.unmet": ("Nicht erfüllte Voraussetzungen:", "Unmet requirements:"),
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
    "question": ("Aufgabe", "Task"),
    "question.frame": ("Frage: {title}", "Question: {title}"),
    # working
    "working.left": ("Verbleibende Zeit", "Time left"),
    "working.position": ("Aufgabe {n}", "Task {n}"),
    "working.position.of": ("Aufgabe {n} von {total}", "Task {n} of {total}"),
    "working.until": ("bis {time} Uhr (UTC)", "until {time} (UTC)"),
    "working.return": ("Zurückgeben", "Return"),
    "working.return.hint": (
        "Eine zurückgegebene Aufgabe wird an andere vergeben; Ihre Antworten darin gehen verloren.",
        "A returned task is given to somebody else; your answers in it are lost.",
    ),
    "working.return.volunteers": ("Hier aufhören", "Stop here"),
    "working.return.hint.volunteers": (
        "Sie können später über denselben Link weitermachen. Ihre Antworten in dieser Aufgabe gehen "
        "verloren.",
        "You can continue later by the same link. Your answers in this task are lost.",
    ),
    "working.returned.volunteers": (
        "Die Aufgabe ist abgebrochen. Was Sie vorher abgesendet haben, ist gespeichert.",
        "The task is stopped. What you submitted before is stored.",
    ),
    "working.automatic": (
        "Anschließend automatisch die nächste Aufgabe annehmen",
        "Accept the next task automatically",
    ),
    "working.continue": ("Abgesendet? Weiter", "Submitted? Continue"),
    "working.minutes": ("Noch 5 Minuten.", "5 minutes left."),
    "working.minute": ("Noch 1 Minute.", "1 minute left."),
    "working.grace": (
        "Die Zeit ist abgelaufen. Bitte senden Sie jetzt ab; das ist noch {time} lang möglich.",
        "Time is up. Please submit now; this is still possible for {time}.",
    ),
    "working.over": (
        "Die Zeit ist abgelaufen. Diese Aufgabe kann nicht mehr abgesendet werden. Ihre Eingaben bleiben in "
        "diesem Browser und erscheinen wieder, wenn Sie dieselbe Aufgabe noch einmal erhalten.",
        "Time is up. This task can no longer be submitted. What you entered stays in this browser and is "
        "restored if you get the same task again.",
    ),
    "working.expired": (
        "Die Zeit für die vorige Aufgabe ist abgelaufen, oder sie wurde zurückgegeben; sie wurde nicht "
        "abgesendet.",
        "The time for the previous task has expired, or it was returned; it was not submitted.",
    ),
    "working.not_yet": (
        "Diese Aufgabe wurde noch nicht abgesendet. Bitte verwenden Sie die Schaltfläche zum "
        "Absenden in der Aufgabe.",
        "This task has not been submitted yet. Please use the submit button inside the task.",
    ),
    "working.returned": ("Die Aufgabe wurde zurückgegeben.", "The task has been returned."),
    "working.returned.title": ("Wie geht es weiter?", "What next?"),
    "working.next": ("Nächste Aufgabe", "Next task"),
    "sending.now": ("Ihre Antwort wird gesendet …", "Your answer is being sent …"),
    "sending.offline": (
        "Keine Verbindung. Ihre Antwort bleibt auf dieser Seite und wird gesendet, sobald die Verbindung "
        "wieder besteht. Bitte lassen Sie die Seite geöffnet.",
        "No connection. Your answer stays on this page and is sent as soon as the connection returns. "
        "Please keep the page open.",
    ),
    "sending.busy": (
        "Der Server kann Ihre Antwort gerade nicht annehmen. Sie bleibt auf dieser Seite und wird gleich "
        "noch einmal gesendet. Bitte lassen Sie die Seite geöffnet.",
        "The server cannot receive your answer at the moment. It stays on this page and is sent again "
        "shortly. Please keep the page open.",
    ),
    "sending.retry": ("Jetzt noch einmal versuchen", "Try again now"),
    "working.received": (
        "Vielen Dank, Ihre Antwort ist eingegangen.",
        "Thank you, your answer has been received.",
    ),
    "working.received.none": (
        "Vielen Dank, Ihre Antwort ist eingegangen. Weitere Aufgaben dieser Art sind zurzeit nicht "
        "für Sie verfügbar.",
        "Thank you, your answer has been received. There are no more tasks of this kind for you at "
        "the moment.",
    ),
    # responses in the question frame
    "submit.done": ("Ihre Antwort ist eingegangen", "Your answer has been received"),
    "submit.again": ("Diese Antwort war bereits eingegangen", "This answer had already been received"),
    "submit.again.text": (
        "Ihre erste Antwort zählt; nichts wurde geändert.",
        "Your first answer counts; nothing was changed.",
    ),
    "submit.next": (
        "Falls es nicht automatisch weitergeht, klicken Sie bitte auf dieser Seite auf „Abgesendet? "
        "Weiter“.",
        "If the page does not continue automatically, please click “Submitted? Continue” on this page.",
    ),
    "submit.wrong": ("Noch nicht abgesendet", "Not submitted yet"),
    "submit.wrong.text": (
        "Die Antwort ist unvollständig oder ungültig. Bitte gehen Sie zurück; Ihre Angaben bleiben "
        "erhalten.",
        "The answer is incomplete or invalid. Please go back; your answers are kept.",
    ),
    "submit.details": ("Fehler in der Antwort", "Problems of the answer"),
    "submit.back": ("Zurück zur Aufgabe", "Back to the task"),
    "submit.refused": ("Antwort nicht angenommen", "Answer not accepted"),
    # after a submission, where the session has ended
    "received.stored": (
        "Ihre Antwort ist gespeichert und zählt; senden Sie sie nicht noch einmal.",
        "Your answer is stored and counts; do not send it again.",
    ),
    "received.open": (
        "Ihre Angaben bleiben in diesem Browser, bis Sie die Aufgabe absenden.",
        "Your answers stay in this browser until you submit the task.",
    ),
    "received.link": (
        "Sie sind in diesem Browser nicht mehr angemeldet. Um weiterzumachen oder Ihren Code zu erhalten, "
        "öffnen Sie den Link der Studie noch einmal.",
        "You are no longer signed in in this browser. To continue or to get your code, open the link of the "
        "study again.",
    ),
    "received.link.personal": (
        "Sie sind in diesem Browser nicht mehr angemeldet. Um weiterzumachen, öffnen Sie Ihren persönlichen"
        " Link noch einmal.",
        "You are no longer signed in in this browser. To continue, open your personal link again.",
    ),
    # record
    "history.title": ("Mein Fortschritt", "My progress"),
    "history.submitted": ("Abgesendet", "Submitted"),
    "history.approved": ("Angenommen", "Approved"),
    "history.pending": ("In Prüfung", "Pending"),
    "history.rejected": ("Abgelehnt", "Rejected"),
    "history.earned": ("Verdient", "Earned"),
    "history.table": ("Meine letzten Aufgaben", "My most recent tasks"),
    "history.task": ("Aufgabe", "Task"),
    "history.when": ("Abgesendet am", "Submitted at"),
    "history.status": ("Status", "Status"),
    "history.feedback": ("Rückmeldung", "Feedback"),
    "history.none": ("Sie haben noch nichts abgesendet.", "You have not submitted anything yet."),
    "status.Submitted": ("in Prüfung", "pending"),
    "status.Approved": ("angenommen", "approved"),
    "status.Rejected": ("abgelehnt", "rejected"),
    "messages.title": ("Nachrichten", "Messages"),
    "messages.none": ("Sie haben keine Nachrichten.", "You have no messages."),
    "messages.write": ("An die Studienleitung schreiben", "Write to the researchers"),
    "messages.write.new_tab": (
        "An die Studienleitung schreiben (neuer Tab)", "Write to the researchers (new tab)",
    ),
    "messages.write.hint": (
        "Gespeichert werden Ihre Nachricht, deren Zeitpunkt und Ihre Kennung. Die Antwort erscheint auf "
        "dieser Seite.",
        "Your message, its time and your ID are stored. The reply is shown on this page.",
    ),
    "messages.subject": ("Betreff", "Subject"),
    "messages.text": ("Nachricht", "Message"),
    "messages.send": ("Nachricht senden", "Send message"),
    "messages.sent": ("Ihre Nachricht wurde gesendet.", "Your message has been sent."),
    "messages.bad": (
        "Bitte geben Sie 1 bis {n} Zeichen ein.", "Please enter 1 to {n} characters.",
    ),
    "messages.often": (
        "Sie haben in der letzten Stunde bereits {n} Nachrichten gesendet. Bitte senden Sie diese später.",
        "You have already sent {n} messages within the last hour. Please send this one later.",
    ),
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
    "qualifications.granted": (
        "Sie haben die Qualifikation erhalten.",
        "You have been granted the qualification.",
    ),
    "qualifications.pending": (
        "Ihr Antrag wurde gestellt; die Studienleitung entscheidet darüber.",
        "Your request has been submitted; the researchers will decide on it.",
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
        "Sie haben diese Studie abgeschlossen. Ihr Abschlusscode lautet:",
        "You have completed this study. Your completion code is:",
    ),
    "finished.no_code": (
        "Sie haben diese Studie abgeschlossen; Ihre Antworten sind gespeichert. Sie können dieses Fenster "
        "schließen.",
        "You have completed this study; your answers are stored. You can close this window.",
    ),
    "finished.back": ("Zurück zu Prolific und abschließen", "Return to Prolific and complete"),
    "finished.back.other": ("Zurück und abschließen", "Return and complete"),
    "finished.nothing.title": ("Keine Aufgaben mehr", "No tasks left"),
    "finished.nothing": (
        "Zurzeit gibt es in dieser Studie keine Aufgabe für Sie. Sie haben nichts abgesendet und "
        "müssen nichts weiter tun. Bitte geben Sie Ihren Platz auf der Plattform frei, über die Sie "
        "gekommen sind (auf Prolific: „Return submission“).",
        "There is no task for you in this study at the moment. You have not submitted anything and "
        "need not do anything else. Please give up your place on the platform you came from (on "
        "Prolific: “Return submission”).",
    ),
    "finished.nothing.volunteers": (
        "Zurzeit gibt es in dieser Studie keine Aufgabe für Sie. Bitte schauen Sie später wieder vorbei.",
        "There is no task for you in this study at the moment. Please come back later.",
    ),
    # other ends of a study
    "ended.code": ("Ihr Code lautet:", "Your code is:"),
    "ended.back.prolific": ("Zurück zu Prolific", "Return to Prolific"),
    "ended.back": ("Zurück", "Return"),
    "ended.no_code": (
        "Bitte geben Sie Ihren Platz auf der Plattform frei, über die Sie gekommen sind (auf Prolific: "
        "„Return submission“).",
        "Please give up your place on the platform you came from (on Prolific: “Return submission”).",
    ),
    "ended.no_code.volunteers": ("Sie können dieses Fenster schließen.", "You can close this window."),
    "ended.no_consent.title": ("Sie nehmen nicht teil", "You are not taking part"),
    "ended.no_consent": (
        "Ohne Ihr Einverständnis wird nichts weiter über Sie gespeichert.",
        "You have not given your consent; nothing further about you is stored.",
    ),
    "ended.no_consent.submitted": (
        "Sie erhalten keine weiteren Aufgaben. Was Sie vorher abgesendet haben, bleibt gespeichert und wird"
        " wie angekündigt bezahlt.",
        "You get no further tasks. What you submitted before remains stored and is paid as announced.",
    ),
    "ended.no_consent.submitted.volunteers": (
        "Sie erhalten keine weiteren Aufgaben. Was Sie vorher abgesendet haben, bleibt gespeichert.",
        "You get no further tasks. What you submitted before remains stored.",
    ),
    "ended.screened_out.title": ("Vielen Dank für Ihr Interesse", "Thank you for your interest"),
    "ended.screened_out": (
        "Für diese Studie suchen wir Personen mit anderen Voraussetzungen. Ihre Antworten auf die Fragen "
        "wurden nicht gespeichert.",
        "This study looks for people with other characteristics. Your answers to the questions were not "
        "stored.",
    ),
    "ended.screened_out.submitted": (
        "Für weitere Aufgaben suchen wir Personen mit anderen Voraussetzungen. Was Sie vorher abgesendet "
        "haben, bleibt gespeichert und wird wie angekündigt bezahlt. Ihre Antworten auf die Fragen wurden "
        "nicht gespeichert.",
        "For further tasks we look for people with other characteristics. What you submitted before remains "
        "stored and is paid as announced. Your answers to the questions were not stored.",
    ),
    "ended.screened_out.submitted.volunteers": (
        "Für weitere Aufgaben suchen wir Personen mit anderen Voraussetzungen. Was Sie vorher abgesendet "
        "haben, bleibt gespeichert. Ihre Antworten auf die Fragen wurden nicht gespeichert.",
        "For further tasks we look for people with other characteristics. What you submitted before remains "
        "stored. Your answers to the questions were not stored.",
    ),
    "ended.timed_out.title": ("Die Zeit ist abgelaufen", "The time is over"),
    "ended.timed_out": (
        "Die Zeit für diese Studie ist abgelaufen. Sie haben nichts abgesendet.",
        "The time for this study is over. You have not submitted anything.",
    ),
    "ended.timed_out.submitted": (
        "Die Zeit für diese Studie ist abgelaufen. Was Sie bis dahin abgesendet haben, zählt und wird wie "
        "angekündigt bezahlt.",
        "The time for this study is over. What you submitted before counts and is paid as announced.",
    ),
    "ended.timed_out.submitted.volunteers": (
        "Die Zeit für diese Studie ist abgelaufen. Was Sie bis dahin abgesendet haben, zählt.",
        "The time for this study is over. What you submitted before counts.",
    ),
    "ended.withdrawn.title": ("Sie haben Ihre Teilnahme widerrufen", "You have withdrawn"),
    "ended.withdrawn": (
        "Ihre Antworten in dieser Studie wurden gelöscht. Sie haben keine Aufgabe abgesendet.",
        "Your answers in this study were deleted. You have not submitted any task.",
    ),
    "ended.withdrawn.submitted": (
        "Ihre Antworten in dieser Studie wurden gelöscht. Abgesendete Aufgaben werden wie angekündigt "
        "bezahlt; danach wird auch Ihre Kennung gelöscht. Bei Fragen schreiben Sie vorher an die "
        "Studienleitung.",
        "Your answers in this study were deleted. Tasks that you submitted are paid as announced; after "
        "that, your ID is deleted as well. If you have questions, write to the researchers before.",
    ),
    "ended.withdrawn.submitted.volunteers": (
        "Ihre Antworten in dieser Studie wurden gelöscht; Ihre Kennung wird ebenfalls gelöscht. Bei Fragen "
        "schreiben Sie vorher an die Studienleitung.",
        "Your answers in this study were deleted; your ID is deleted as well. If you have questions, write "
        "to the researchers before.",
    ),
    "ended.left.title": ("Sie sind abgemeldet", "You are signed out"),
    "ended.left": (
        "Sie haben nichts abgesendet. Um weiterzumachen, öffnen Sie den Link der Studie noch einmal.",
        "You have not submitted anything. To continue, open the link of the study again.",
    ),
    "ended.left.submitted": (
        "Was Sie abgesendet haben, ist gespeichert und wird wie angekündigt bezahlt. Um weiterzumachen, "
        "Ihren Code zu erhalten oder an die Studienleitung zu schreiben, öffnen Sie den Link der Studie "
        "noch einmal.",
        "What you submitted is stored and is paid as announced. To continue, to get your code or to write to "
        "the researchers, open the link of the study again.",
    ),
    "ended.left.submitted.volunteers": (
        "Was Sie abgesendet haben, ist gespeichert. Um weiterzumachen oder an die Studienleitung zu "
        "schreiben, öffnen Sie den Link der Studie noch einmal in diesem Browser.",
        "What you submitted is stored. To continue or to write to the researchers, open the link of the "
        "study again in this browser.",
    ),
    "ended.closed.title": ("Diese Studie ist beendet", "This study has ended"),
    "ended.closed": (
        "Diese Studie nimmt keine Antworten mehr an. Sie haben nichts abgesendet und müssen nichts weiter "
        "tun.",
        "This study no longer accepts answers. You have not submitted anything and need not do anything "
        "else.",
    ),
    "ended.closed.submitted": (
        "Diese Studie nimmt keine Antworten mehr an. Was Sie abgesendet haben, ist gespeichert und wird wie "
        "angekündigt bezahlt. Wenn Sie noch keinen Code erhalten haben, schreiben Sie bitte an die "
        "Studienleitung.",
        "This study no longer accepts answers. What you submitted is stored and is paid as announced. If you "
        "have not received a code, please write to the researchers.",
    ),
    "withdraw.title": ("Teilnahme widerrufen", "Withdraw from the study"),
    "withdraw.deleted": (
        "Wenn Sie Ihre Teilnahme widerrufen, werden alle Ihre Antworten in dieser Studie gelöscht, auch die "
        "Antworten auf Fragen vor der Studie. Eine begonnene Aufgabe wird zurückgegeben.",
        "If you withdraw, all your answers in this study are deleted, including those to questions before "
        "the study. A task in progress is returned.",
    ),
    "withdraw.kept": (
        "Erhalten bleiben Zeitpunkte und Beträge von Zahlungen sowie zusammengefasste Ergebnisse, die schon "
        "veröffentlicht sind.",
        "The times and amounts of payments are kept, and aggregated results that are already published.",
    ),
    "withdraw.kept.volunteers": (
        "Erhalten bleiben die Zeitpunkte Ihrer Teilnahme sowie zusammengefasste Ergebnisse, die schon "
        "veröffentlicht sind.",
        "The times of your participation are kept, and aggregated results that are already published.",
    ),
    "withdraw.paid": (
        "Aufgaben, die Sie schon abgesendet haben, werden trotzdem bezahlt.",
        "Tasks that you have already submitted are paid nevertheless.",
    ),
    "withdraw.final": (
        "Das lässt sich nicht rückgängig machen.", "This cannot be undone.",
    ),
    "withdraw.button": ("Antworten löschen und abmelden", "Delete my answers and sign out"),
    "withdraw.back": ("Weiter teilnehmen", "Continue to take part"),
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
        "Diese Frage verlangt eine Datei. Da dieser Dienst keine Dateien annimmt, kann sie nicht "
        "beantwortet werden.",
        "This question requires a file. It cannot be answered, because this service does not accept files.",
    ),
    "form.missing": ("„{name}“ ist noch nicht beantwortet.", "“{name}” has not been answered."),
    "form.short": (
        "„{name}“ hat {n} Zeichen; erlaubt sind {low} bis {high}.",
        "“{name}” has {n} characters; expected {low} to {high}.",
    ),
    "form.number": (
        "„{name}“ muss eine Zahl von {low} bis {high} sein.",
        "“{name}” must be a number from {low} to {high}.",
    ),
    "form.format": ("Ungültige Eingabe.", "Invalid input supplied."),
    "form.selections": (
        "Bei „{name}“ sind {n} Antworten gewählt; erlaubt sind {low} bis {high}.",
        "“{name}” has {n} choices; expected {low} to {high}.",
    ),
    "form.foreign": (
        "Bei „{name}“ wurde eine Antwort gesendet, die nicht zur Auswahl gehört.",
        "“{name}” has an answer that is not one of the choices.",
    ),
    # errors
    "error.title": ("Anfrage nicht möglich", "Request not possible"),
    "error.title.403": ("Zugriff nicht möglich", "Access denied"),
    "error.title.404": ("Seite nicht gefunden", "Page not found"),
    "error.title.410": ("Nicht mehr verfügbar", "No longer available"),
    "error.title.429": ("Zu viele Anfragen", "Too many requests"),
    "error.title.500": ("Interner Fehler", "Internal error"),
    "error.request": ("Kennung der Anfrage: {id}", "Request ID: {id}"),
    "error.link": (
        "Dieser Link ist ungültig oder abgelaufen. Bitte öffnen Sie ihn noch einmal genau so, wie "
        "Sie ihn erhalten haben, oder wenden Sie sich an die Studienleitung.",
        "This link is not valid or has expired. Please open it again exactly as you received it, or "
        "contact the researchers.",
    ),
    "error.csrf": (
        "Dieses Formular ist abgelaufen. Bitte gehen Sie zurück, laden Sie die Seite neu und "
        "versuchen Sie es noch einmal.",
        "This form has expired. Please go back, reload the page and try again.",
    ),
    "error.not_found": (
        "Die Adresse ist falsch, oder die Seite gibt es nicht mehr.",
        "The address is wrong, or the page no longer exists.",
    ),
    "error.question": (
        "Diese Aufgabe kann nicht angezeigt werden, weil ihre Adresse ungültig ist. Bitte wenden Sie sich an "
        "die Studienleitung.",
        "This task cannot be displayed because its address is not valid. Please contact the researchers.",
    ),
    "error.method": (
        "Diese Seite kann so nicht aufgerufen werden.",
        "This page does not support this kind of request.",
    ),
    "error.often": (
        "Bitte warten Sie {n} Sekunde, und versuchen Sie es dann noch einmal.|Bitte warten Sie {n} "
        "Sekunden, und versuchen Sie es dann noch einmal.",
        "Please wait {n} second and try again.|Please wait {n} seconds and try again.",
    ),
    "error.server": (
        "Auf dem Server ist ein Fehler aufgetreten. Bitte versuchen Sie es noch einmal.",
        "An error occurred on the server. Please try again.",
    ),
    "error.not_a_form": (
        "Die Anfrage enthält kein gültiges Formular.",
        "The request does not contain a valid form.",
    ),
    "error.too_large": (
        "Die Anfrage ist zu groß; erlaubt sind höchstens 1 MB und 1.000 Felder.",
        "The request is too large; the limits are 1 MB and 1,000 fields.",
    ),
    "error.files": (
        "Dieser Dienst nimmt keine Dateien an. Bitte gehen Sie zurück und senden Sie die Antwort "
        "ohne Datei ab.",
        "This service does not accept files. Please go back and submit the answer without a file.",
    ),
    "error.get": (
        "Diese Adresse nimmt Antworten entgegen. Es wurde nichts abgesendet, weil assignmentId fehlt. Bitte"
        " kehren Sie zur Aufgabe zurück, und wenden Sie sich an die Studienleitung, wenn es nicht "
        "weitergeht.",
        "This address receives answers. Nothing was submitted, because assignmentId is missing. Please go "
        "back to the task, and contact the researchers if it does not continue.",
    ),
    "error.preview": (
        "In der Vorschau kann nichts abgesendet werden. Bitte nehmen Sie die Aufgabe zuerst an.",
        "Nothing can be submitted in the preview. Please accept the task first.",
    ),
    "error.no_token": (
        "Diese Antwort lässt sich keiner Aufgabe zuordnen. Sie muss an die Adresse gesendet werden, "
        "die die Seite als turkSubmitTo erhält.",
        "This answer cannot be matched with a task. It must be sent to the address that the page "
        "receives as turkSubmitTo.",
    ),
    "error.NoWork": (
        "Zurzeit ist keine Aufgabe dieser Art für Sie verfügbar.",
        "No task of this kind is available for you at the moment.",
    ),
    "error.NotEligible": (
        "Sie erfüllen die Voraussetzungen für diese Aufgabe nicht.",
        "You do not meet this task’s requirements.",
    ),
    "error.AlreadyDone": ("Diese Aufgabe haben Sie bereits bearbeitet.", "You have already done this task."),
    "error.Full": (
        "Diese Aufgabe wurde inzwischen an andere vergeben.",
        "This task has been taken by others in the meantime.",
    ),
    "error.Expired": ("Die Zeit für diese Aufgabe ist abgelaufen.", "The time for this task has expired."),
    "error.Blocked": (
        "Die Studienleitung nimmt zurzeit keine Arbeit von Ihnen an. Bei Fragen wenden Sie sich "
        "bitte an sie.",
        "You cannot currently work for these researchers. Please contact them if you have questions.",
    ),
    "error.Bound": (
        "Mit dieser Kennung wurde die Studie bereits in einer anderen Sitzung begonnen. Bitte öffnen Sie sie "
        "im selben Browser oder über denselben Link wie beim ersten Mal, oder schreiben Sie über die "
        "Plattform, von der Sie gekommen sind, an die Studienleitung. Abgesendete Aufgaben sind gespeichert.",
        "This ID has already entered the study in another session. Please open it in the same browser or "
        "by the same link as the first time, or write to the researchers on the platform you came from. "
        "Tasks that were submitted are stored.",
    ),
    "error.Excluded": (
        "Sie haben bereits an einer verwandten Studie teilgenommen und können an dieser nicht teilnehmen. "
        "Bitte geben Sie Ihren Platz auf der Plattform frei, über die Sie gekommen sind.",
        "You took part in a related study and cannot take part in this one. Please give up your place on "
        "the platform you came from.",
    ),
    "error.Excluded.volunteers": (
        "Sie haben bereits an einer verwandten Studie teilgenommen und können an dieser nicht teilnehmen.",
        "You took part in a related study and cannot take part in this one.",
    ),
    "error.StudyFull.volunteers": (
        "Diese Studie hat bereits alle Teilnehmenden.", "This study already has all its participants.",
    ),
    "error.Taken": (
        "Diese Kennung ist schon vergeben. Bitte wählen Sie eine andere.",
        "This ID is already taken. Please choose another one.",
    ),
    "error.Spelling": (
        "Diese Kennung gibt es schon in anderer Groß- und Kleinschreibung. Bitte wenden Sie sich an die "
        "Studienleitung.",
        "This ID exists already with other upper and lower case. Please contact the researchers.",
    ),
    "error.closed": (
        "Über diesen Link kann man zurzeit nicht mehr teilnehmen. Wenn Sie schon Aufgaben abgesendet haben,"
        " sind diese gespeichert und werden wie angekündigt bezahlt: Schreiben Sie bitte über die "
        "Plattform, von der Sie gekommen sind, an die Studienleitung, und behalten Sie Ihren Platz dort. "
        "Wenn Sie noch nichts abgesendet haben, müssen Sie nichts weiter tun.",
        "This link no longer leads to a study. If you have submitted tasks, they are stored and are paid as"
        " announced: please write to the researchers on the platform you came from, and keep your place "
        "there. If you have not submitted anything, you need not do anything else.",
    ),
    "error.StudyFull": (
        "Diese Studie hat bereits alle Teilnehmenden. Bitte geben Sie Ihren Platz auf der Plattform frei, "
        "über die Sie gekommen sind.",
        "This study already has all its participants. Please give up your place on the platform you came "
        "from.",
    ),
    "error.NotYours": (
        "Die Adresse ist falsch, oder die Seite gibt es nicht mehr.",
        "The address is wrong, or the page no longer exists.",
    ),
    "error.Closed": (
        "Diese Aufgabe ist nicht mehr offen.", "This task is no longer open.",
    ),
    "error.Unknown": (
        "Die Adresse ist falsch, oder die Seite gibt es nicht mehr.",
        "The address is wrong, or the page no longer exists.",
    ),
}  # fmt: skip


def text(language: str, key: str, **values: object) -> str:
    """Return a text; ``n`` selects the singular or plural, and numbers are formatted.

    >>> text("en", "work.tasks", n=1), text("de", "work.tasks", n=1000)
    ('1 task', '1.000 Aufgaben')
    """
    message = TEXTS[key][0 if language == "de" else 1]
    if "|" in message:
        singular, plural = message.split("|")
        message = singular if values["n"] == 1 else plural
    formatted = {
        name: number(language, value) if isinstance(value, (int, float)) else value
        for name, value in values.items()
    }
    return message.format(**formatted)


def number(language: str, value: float) -> str:
    """Format a number with the separators of the language.

    >>> number("de", 2500.5), number("en", 3000.0)
    ('2.500,5', '3,000')
    """
    return format_decimal(value, locale=language)


def error_title(language: str, status: int) -> str:
    """Return the title of the error page of an HTTP status.

    >>> error_title("de", 404), error_title("en", 413)
    ('Seite nicht gefunden', 'Request not possible')
    """
    key = f"error.title.{status}"
    return text(language, key if key in TEXTS else "error.title")


def choose_language(accepted: str) -> str:
    """Return the preferred language of an Accept-Language header: German or English.

    >>> choose_language("fr, de-AT;q=0.8, en;q=0.3"), choose_language(""), choose_language("en, de")
    ('de', 'en', 'en')
    """
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        tag, _, weight = part.strip().partition(";q=")
        language = tag.split("-")[0]
        if language in LANGUAGES:
            weights[language] = max(weights.get(language, 0.0), _parse_weight(weight))
    best = max(weights.values(), default=0.0)
    return next((name for name, weight in weights.items() if weight == best > 0), "en")


def _parse_weight(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0


@functools.lru_cache(maxsize=256)
def money(language: str, amount: Decimal) -> str:
    """Format US dollars with cents.

    >>> money("en", Decimal("1234.5")), money("de", Decimal("0.25"))
    ('$1,234.50', '0,25\\xa0$')
    """
    return format_currency(amount, "USD", locale=language)


def iso(seconds: float) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(seconds: float, language: str) -> str:
    """Format a time in UTC for browsers without scripts; scripts replace it by the local time.

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
    """Format a duration in its two largest units.

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
