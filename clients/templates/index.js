// A client of the REST interface of Nous $version. Written by `python -m clients.generate`: change that, not this.

export class NousProblem extends Error {
  constructor(status, problem, requestId) {
    super(problem.detail || problem.title || "HTTP " + status);
    this.name = "NousProblem";
    this.status = status;
    this.problem = problem;
    this.requestId = requestId;
  }
}

const HEADERS = { agent: "X-Nous-Agent", deadline: "X-Nous-Deadline", session: "X-Nous-Session", idempotencyKey: "Idempotency-Key" };

export class Nous {
  constructor({ url = "http://127.0.0.1:8420", key, fetch: send = globalThis.fetch, ...options } = {}) {
    this.url = url.replace(/\/+$$/, "");
    this.key = key;
    this.send = send;
    this.options = options;
  }

  async call(method, path, body, query, options) {
    if (/\/(\/|$$)/.test(path.slice(1))) throw new TypeError("an id or a name in " + path + " is empty");
    const told = { ...this.options, ...options };
    const headers = { Accept: "application/json" };
    if (this.key) headers.Authorization = "Bearer " + this.key;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    for (const [name, header] of Object.entries(HEADERS)) if (told[name] !== undefined) headers[header] = String(told[name]);
    const asked = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null).flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)]));
    const search = asked.length ? "?" + new URLSearchParams(asked) : "";
    const answer = await this.send(this.url + path + search, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: told.signal,
    });
    const text = await answer.text();
    const isJson = (answer.headers.get("content-type") || "").includes("json");
    const value = isJson && text ? JSON.parse(text) : text || undefined;
    if (!answer.ok) throw new NousProblem(answer.status, isJson ? value : { title: text }, answer.headers.get("x-request-id"));
    return value;
  }

$javascript
}
