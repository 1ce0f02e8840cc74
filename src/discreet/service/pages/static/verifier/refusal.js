// What was shown is malformed or does not prove what it claims.
export class NotProven extends Error {}
