"""The JDBC driver, through a small program in Java."""

import subprocess
from pathlib import Path

import pytest
from wire_gateway import KEY

JAR = Path("/usr/share/java/postgresql.jar")
pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.needs("jdbc"),
]
PROGRAM = r"""
import java.sql.*;

public class Asks {
    public static void main(String[] given) throws Exception {
        try (Connection c = DriverManager.getConnection(given[0])) {
            DatabaseMetaData known = c.getMetaData();
            ResultSet r = known.getTables(null, "public", "%", new String[] {"TABLE"});
            while (r.next()) System.out.println("table " + r.getString("TABLE_NAME"));
            r = known.getColumns(null, null, "people", "inc%");
            while (r.next()) System.out.println("column " + r.getString(4) + " " + r.getString(6));
            r = known.getSchemas();
            while (r.next()) System.out.println("schema " + r.getString(1));
            System.out.println("keys " + known.getPrimaryKeys(null, null, "people").next()
                + known.getIndexInfo(null, null, "people", false, false).next()
                + known.getImportedKeys(null, null, "people").next());
            known.getTypeInfo();
            String asked = "SELECT sex, COUNT(*) AS n FROM people WHERE age > ? AND sex = ? "
                + "GROUP BY sex";
            PreparedStatement p = c.prepareStatement(asked);
            for (int i = 0; i < 8; i++) {  // after five of them it is a named statement, in binary
                p.setInt(1, 30);
                p.setString(2, "male");
                ResultSet q = p.executeQuery();
                q.next();
                System.out.println("answer " + q.getString(1) + " " + (q.getDouble(2) > 300)
                    + " " + q.getMetaData().getColumnTypeName(2));
            }
            p = c.prepareStatement("SELECT COUNT(*) FROM people WHERE sex IN (?,?) AND income < ?");
            p.setString(1, "male");
            p.setString(2, "female");
            p.setBigDecimal(3, new java.math.BigDecimal("100000.5"));
            for (int i = 0; i < 8; i++) {
                ResultSet q = p.executeQuery();
                q.next();
                if (i == 7) System.out.println("listed " + (q.getDouble(1) > 1000));
            }
            p = c.prepareStatement("SELECT ?::date");
            p.setDate(1, Date.valueOf("2026-01-02"));
            r = p.executeQuery();
            r.next();
            System.out.println("day " + r.getDate(1));
            System.out.println("words " + (known.getSQLKeywords() == null));
            c.setAutoCommit(false);
            Statement s = c.createStatement();
            s.setFetchSize(2);
            r = s.executeQuery("SELECT n FROM generate_series(1, 5) AS t(n)");
            int sum = 0;
            while (r.next()) sum += r.getInt(1);
            System.out.println("sum " + sum);
            try {
                s.executeQuery("SELECT * FROM people");
            } catch (SQLException e) {
                boolean hinted = e.getMessage().contains("Hint");
                System.out.println("error " + e.getSQLState() + " " + hinted);
            }
            c.rollback();
        }
    }
}
"""


def test_a_program_in_java_asks(wire, tmp_path):
    (tmp_path / "Asks.java").write_text(PROGRAM)
    subprocess.run(["javac", "Asks.java"], cwd=tmp_path, check=True, timeout=120)
    url = f"jdbc:postgresql://127.0.0.1:{wire.port}/people?user={KEY}&password=open%20sesame"
    url += "&options=-c%20discreet.epsilon=0.1"
    before = len(wire.desk.asked)
    done = subprocess.run(
        ["java", "-cp", f"{JAR}:{tmp_path}", "Asks", url],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "table people", "column income int8", "schema information_schema", "schema pg_catalog",
        "schema public", "keys falsefalsefalse", *["answer male true float8"] * 8, "listed true",
        "day 2026-01-02", "words true", "sum 15",
        "error 0A000 true",
    ]  # fmt: skip
    assert len(wire.desk.asked) == before + 16
