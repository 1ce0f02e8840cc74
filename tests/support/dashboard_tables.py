# ruff: noqa: E501 (rows of a table read better on one line)
"""Tables of a survey, a shop, a chat, a website and firms, for questions of dashboards and tutorials."""

from typing import Any

# i counts rows; k = (i * i + 31 * i) % 10007 stands for chance, and no person has more than ten rows.

TABLES = {
    "survey": """
        SELECT i AS person, TIMESTAMP '2026-03-01 08:00:00' + to_seconds(i * 61) AS moment, 18 + k * 37 % 50 AS age,
            CASE WHEN k % 20 < 19 THEN (k * 7 % 11 % 3 = 0)::INTEGER END AS is_developer, CASE WHEN k * 3 % 17 < 14 THEN k * 5 % 7 % 2 END AS is_first_job,
            CASE WHEN k * 5 % 13 < 12 THEN (k * 11 % 19 < 4)::INTEGER END AS is_minority, CASE WHEN k * 7 % 23 < 22 THEN ['female', 'male', 'male', 'other'][1 + k * 3 % 29 % 4] END AS gender,
            CASE WHEN k * 3 % 19 < 18 THEN ['some school', 'bachelor''s degree', 'master''s degree', 'Ph.D.', 'bachelor''s degree'][1 + k * 13 % 31 % 5] END AS degree,
            CASE WHEN k * 11 % 17 < 15 THEN ['freelance', 'a startup', 'a large company', 'a small company'][1 + k * 17 % 37 % 4] END AS wish,
            CASE WHEN k * 5 % 11 < 9 THEN ['from home', 'no preference', 'in an office', 'on the road'][1 + k * 19 % 41 % 4] END AS place, CASE WHEN k * 13 % 11 < 10 THEN k * 3 % 5 % 2 END AS relocates,
            CASE WHEN k * 3 % 13 < 11 THEN ['under 15 minutes', '15 to 29 minutes', '30 to 44 minutes', 'NULL'][1 + k * 23 % 43 % 4] END AS commute,
            ['India', 'Kenya', 'Peru', 'Poland', 'India'][1 + k * 5 % 47 % 5] AS lives, ['India', 'Kenya', 'Peru', 'Chile', 'India'][1 + k * 7 % 53 % 5] AS citizen,
            5000 + k * 97 % 60000 * 2 AS income, 20000 + k * 89 % 70000 AS expected, ['English', 'Hindi', 'Polish', 'Swahili', 'Spanish', 'English'][1 + k * 11 % 59 % 6] AS language
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(6000) r(i))""",
    "deals": """
        SELECT i % 1500 AS person, 'Customer ' || i % 1500 AS customer, DATE '2024-01-01' + CAST(k % 70 * 10 AS INTEGER) AS day,
            ['Ships', 'Trains', 'Planes', 'Cars'][1 + k * 5 % 11 % 4] AS line, ['Small', 'Medium', 'Large', 'Small'][1 + k * 7 % 13 % 4] AS size,
            ['Shipped', 'Shipped', 'Cancelled', 'On Hold'][1 + k * 3 % 17 % 4] AS status, 20 + k * 37 % 80 AS price, 1 + k * 13 % 40 AS quantity, (20 + k * 37 % 80) * (1 + k * 13 % 40) AS amount,
            ['France', 'Spain', 'Japan'][1 + k * 11 % 19 % 3] AS country, [['Paris', 'Lyon'], ['Madrid', 'Cadiz'], ['Tokyo', 'Kobe']][1 + k * 11 % 19 % 3][1 + k * 3 % 23 % 2] AS city,
            year(DATE '2024-01-01' + CAST(k % 70 * 10 AS INTEGER)) AS year
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(9000) r(i))""",
    "projects": """
        SELECT i AS person, 'Task ' || i AS task, ['high', 'low'][1 + i % 2] AS priority, DATE '2026-01-01' + CAST(i % 60 AS INTEGER) AS starts, DATE '2026-02-01' + CAST(i % 90 AS INTEGER) AS ends
        FROM range(300) r(i)""",
    "members": """
        SELECT i AS person, 'Member ' || i AS name, DATE '2026-01-01' + CAST(i * 7 % 90 AS INTEGER) AS updated,
            CASE WHEN i % 13 < 12 THEN ['Europe/Berlin', 'Asia/Tokyo', 'America/Lima', 'UTC', 'Africa/Cairo', 'Asia/Delhi'][1 + i * 7 % 17 % 6] END AS zone
        FROM range(2000) r(i)""",
    "memberships": """
        SELECT i % 2000 AS person, 1 + (i % 2000 * 7 + i // 2000 * (1 + i % 2000 % 2)) % 6 AS channel,
            ['general', 'random', 'help', 'jobs', 'news', 'bots'][1 + (i % 2000 * 7 + i // 2000 * (1 + i % 2000 % 2)) % 6] AS name
        FROM range(6000) r(i)""",
    "messages": """
        SELECT i % 2000 AS person, 1 + k * 5 % 13 % 6 AS channel, TIMESTAMP '2026-01-05 09:00:00' + to_minutes(k % 40 * 1440 + k % 300) AS moment, 'text ' || i AS text
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(16000) r(i))""",
    "threads": """
        SELECT i % 2000 AS person, TIMESTAMP '2026-01-05 09:00:00' + to_minutes(k % 60 * 1440 + k % 300) AS moment
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(6000) r(i))""",
    "visits": """
        SELECT i % 2500 AS person, DATE '2026-01-01' + CAST(k % 31 AS INTEGER) AS day, TIMESTAMP '2026-01-01 10:00:00' + to_minutes(k % 31 * 1440 + k % 500) AS moment,
            ['page_view', 'session_start', 'purchase', 'first_visit', 'page_view', 'in_app_purchase', 'scroll'][1 + k * 5 % 17 % 7] AS name, k * 7 % 5 AS session,
            CASE WHEN k * 5 % 17 % 7 = 2 THEN 5 + k * 13 % 90 END AS value, CASE WHEN k * 3 % 7 < 5 THEN k * 29 % 200 END AS engaged,
            ['google', 'direct', 'news'][1 + k * 3 % 11 % 3] AS source, ['cpc', 'organic'][1 + k * 7 % 13 % 2] AS medium, ['spring', 'summer'][1 + k * 5 % 19 % 2] AS campaign, 'page ' || k % 9 AS page
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(20000) r(i))""",
    "baskets": """
        SELECT i % 2500 AS person, DATE '2026-01-01' + CAST(k % 31 AS INTEGER) AS day, ['purchase', 'add_to_cart', 'view_item'][1 + k * 5 % 17 % 3] AS name,
            1 + k * 7 % 13 % 5 AS item, ['mug', 'tee', 'cap', 'pen', 'bag'][1 + k * 7 % 13 % 5] AS title, 1 + k * 11 % 4 AS quantity
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(15000) r(i))""",
    "prices": """
        SELECT i % 1200 AS person, DATE '2024-01-01' + CAST(k % 731 AS INTEGER) AS day, year(DATE '2024-01-01' + CAST(k % 731 AS INTEGER)) AS year,
            month(DATE '2024-01-01' + CAST(k % 731 AS INTEGER)) AS month, 100 + k * 13 % 300 AS opening, CASE WHEN k % 9 > 0 THEN 110 + k * 13 % 330 END AS high,
            CASE WHEN k % 7 > 0 THEN 90 + k * 13 % 290 END AS low, 95 + k * 13 % 310 AS closing, 1000 + k * 89 % 9000 AS volume
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(9600) r(i))""",
    "athletes": """
        SELECT i AS person, 'Player ' || i AS name, CASE WHEN k % 23 > 0 THEN ['Alder', 'Beech', 'Oak', 'Pine', 'Willow'][1 + k * 3 % 11 % 5] END AS school,
            CASE WHEN k % 17 > 0 THEN ['FR', 'SO', 'JR', 'SR'][1 + k * 7 % 13 % 4] END AS year, ['CA', 'OR', 'TX', 'GA', 'CA', 'WA'][1 + k * 5 % 19 % 6] AS state,
            ['WR', 'QB', 'LB'][1 + k * 11 % 23 % 3] AS position, 65 + k * 3 % 18 AS height, 150 + k * 17 % 200 AS weight
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(6000) r(i))""",
    "firms": """
        SELECT i AS person, 'Firm ' || i AS name, CASE WHEN i % 8 < 7 THEN ['NY', 'CA', 'MA', 'WA'][1 + i * 7 % 13 % 4] END AS state,
            ['operating', 'acquired', 'closed', 'operating'][1 + i * 5 % 11 % 4] AS status, 1990 + i * 3 % 25 AS founded
        FROM range(3000) r(i)""",
    "takeovers": """
        SELECT i * 3 AS person, 'Firm ' || i * 3 AS name, 2000 + i * 7 % 20 AS year FROM range(1200) r(i)""",
    "stakes": """
        SELECT i * 7 % 2400 AS person, 'Firm ' || i * 7 % 2400 AS name, 'Fund ' || i * 11 % 29 % 12 AS investor, 1995 + i * 5 % 25 AS year FROM range(4800) r(i)""",
    "later_stakes": """
        SELECT 600 + i * 7 % 2000 AS person, 'Firm ' || 600 + i * 7 % 2000 AS name, 'Fund ' || 5 + i * 11 % 31 % 12 AS investor, 2005 + i * 5 % 15 AS year FROM range(4000) r(i)""",
    "measures": """
        SELECT i AS person, CASE WHEN k * 3 % 17 < 16 THEN 1 + k * 7 % 11 % 3 END AS kind, CASE WHEN k * 5 % 13 < 12 THEN k * 37 % 100 / 2 END AS v,
            CASE WHEN k * 7 % 19 < 17 THEN k * 37 % 100 / 4 + k * 13 % 20 END AS w, CASE WHEN k * 3 % 23 < 21 THEN CAST(k * 11 % 9 AS VARCHAR) END AS digit,
            CASE WHEN k * 5 % 29 < 27 THEN (k * 31 % 200) / 10 || '' END AS written, ['one', 'two', 'nine'][1 + k * 3 % 31 % 3] AS word
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(6000) r(i))""",
    "dishes": """
        SELECT i AS person, ['Drink', 'Main', 'Dessert', 'Main'][1 + k * 5 % 11 % 4] AS category, 1 + k * 7 % 10 AS cost, 4 + k * 7 % 10 + k * 3 % 5 AS price
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(4000) r(i))""",
    "drafts": """
        SELECT i % 900 AS person, i * 7 % 5 AS org, i * 3 % 7 < 2 AS is_archived, i * 5 % 11 < 6 AS is_draft, ['create', 'edit', 'view'][1 + i * 11 % 13 % 3] AS action,
            DATE '2026-01-01' + CAST(i * 29 % 200 AS INTEGER) AS made
        FROM range(5400) r(i)""",
    "accounts": """
        SELECT i AS person, i AS id, ['Basic', 'Business', 'Premium', 'Basic'][1 + k * 5 % 13 % 4] AS plan, k * 3 % 7 < 5 AS is_active, DATE '2026-01-01' + CAST(k % 150 AS INTEGER) AS made,
            DATE '2026-02-01' + CAST(k % 150 AS INTEGER) AS trial_ends, 100 * (1 + k * 5 % 13 % 4) AS payment
        FROM (SELECT i, (i * i + 31 * i) % 10007 AS k FROM range(4000) r(i))""",
}  # fmt: skip

PUBLIC = {
    "channels": "SELECT unnest([1, 2, 3, 4, 5, 6]) AS channel, unnest(['general', 'random', 'help', 'jobs', 'news', 'bots']) AS name",
    "totals": "SELECT DATE '2026-01-01' + CAST(i AS INTEGER) AS day, 100 + i * 3 + i * i % 7 AS members FROM range(90) r(i)",
    "nodes": "SELECT i AS id, CASE WHEN i > 0 THEN (i - 1) // 3 END AS parent, 'Node ' || i AS name FROM range(13) r(i)",
    "teams": """
        SELECT unnest(['Alder', 'Beech', 'Oak', 'Pine', 'Willow']) AS school, unnest(['North', 'North', 'South', 'South', 'West']) AS conference,
            unnest(['First', 'First', 'Second', 'First', 'Second']) AS division""",
}  # fmt: skip

COLUMNS: dict[str, dict[str, Any]] = {
    "survey": {"income": {"bounds": (0, 130000)}, "age": {"bounds": (0, 100)}},
    "deals": {"quantity": {"bounds": (0, 50)}, "amount": {"bounds": (0, 5000)}, "price": {"bounds": (0, 100)}},
    "visits": {"value": {"bounds": (0, 100)}, "engaged": {"bounds": (0, 250)}},
    "baskets": {"quantity": {"bounds": (0, 5)}},
    "prices": {
        "opening": {"bounds": (0, 500)}, "high": {"bounds": (0, 500)}, "low": {"bounds": (0, 500)},
        "closing": {"bounds": (0, 500)}, "volume": {"bounds": (0, 10000)},
    },
    "athletes": {"weight": {"bounds": (100, 400)}},
    "measures": {"v": {"bounds": (0, 50)}, "w": {"bounds": (0, 50)}, "kind": {"bounds": (1, 3)}},
    "dishes": {"cost": {"bounds": (0, 20)}, "price": {"bounds": (0, 20)}},
    "accounts": {"payment": {"bounds": (0, 500)}},
}  # fmt: skip
