"""Questions with something wrong about them, and the digits in what is said about them."""

import string

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT region, AVG(income) AS pay FROM people WHERE age BETWEEN 20 AND 60 GROUP BY region",
    "SELECT MEDIAN(CLAMP(income, 0, 1e5)) FROM people WHERE region IN ('north', 'south')",
    "WITH a AS (SELECT region, COUNT(*) AS n FROM people GROUP BY 1) SELECT MAX(n) FROM a",
    "SELECT p.region, COUNT(*) FROM people p JOIN people q USING (person) GROUP BY 1",
    "SELECT CASE WHEN age > 40 THEN 'old' ELSE 'young' END AS k, SUM(income) FROM people GROUP BY k"
    " HAVING COUNT(*) > 3 ORDER BY 1 LIMIT 5",
]  # fmt: skip
PIECES = [
    "'", '"', ";", "--", "/*", "*/", "(", ")", ",", "*", "%", "$1", "?", ":x", "\\", "\x00",
    "\u202e", "NULL", "SELECT", "FROM", "UNION ALL", "WHERE 1=1", "DROP TABLE people",
    "read_csv('/etc/passwd')", "pg_sleep(9)", "1e999", "-0.0", "9" * 400, "\U0001f600", "x'ff'",
    "ARRAY[1]", "{'a': 1}", "::int", "OVER ()", "LATERAL", "PIVOT", "ATTACH 'x'",
    "COPY people TO 'x'", "PRAGMA version", "a.b.c.d", "(" * 60, "SELECT " * 30, "NOT " * 200,
    "\r\n\t", "é", "\uffff",
]  # fmt: skip


def mutated(question, dice):
    place, change = dice.randrange(len(question) + 1), dice.random()
    if change < 0.35:
        return question[:place] + dice.choice(PIECES) + question[place:]
    if change < 0.6:
        return question[:place] + question[place + dice.randint(1, 12) :]
    if change < 0.8:
        words = question.split(" ")
        dice.shuffle(words)
        return " ".join(words)
    letter = dice.choice(string.printable)
    return question[:place] + letter + question[place + 1 :]


def numbers(text):
    return set("".join(c if c.isdigit() else " " for c in text).split())
