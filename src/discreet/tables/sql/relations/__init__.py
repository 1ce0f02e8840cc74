"""FROM: tables, subqueries and joins, each row of which belongs to one unit."""
