// A client of the REST interface of Nous 0.1.0. Written by `python -m clients.generate`: change that, not this.

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
    this.url = url.replace(/\/+$/, "");
    this.key = key;
    this.send = send;
    this.options = options;
  }

  async call(method, path, body, query, options) {
    const told = { ...this.options, ...options };
    const headers = { Accept: "application/json" };
    if (this.key) headers.Authorization = "Bearer " + this.key;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    for (const [name, header] of Object.entries(HEADERS)) if (told[name] !== undefined) headers[header] = String(told[name]);
    const asked = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null);
    const search = asked.length ? "?" + new URLSearchParams(asked.map(([name, value]) => [name, String(value)])) : "";
    const answer = await this.send(this.url + path + search, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: told.signal,
    });
    const text = await answer.text();
    const isJson = (answer.headers.get("content-type") || "").includes("json");
    const value = isJson && text ? JSON.parse(text) : text;
    if (!answer.ok) throw new NousProblem(answer.status, isJson ? value : { title: text }, answer.headers.get("x-request-id"));
    return value;
  }

  getLinks(options) {
    return this.call("GET", `/`, undefined, undefined, options);
  }

  getHealth(options) {
    return this.call("GET", `/health`, undefined, undefined, options);
  }

  getReadiness(options) {
    return this.call("GET", `/ready`, undefined, undefined, options);
  }

  getMetrics(options) {
    return this.call("GET", `/metrics`, undefined, undefined, options);
  }

  learn(body, options) {
    return this.call("POST", `/facts`, body, undefined, options);
  }

  listStatements(fact_id, options) {
    return this.call("GET", `/facts/${encodeURIComponent(fact_id)}/statements`, undefined, undefined, options);
  }

  split(statement_id, body, options) {
    return this.call("POST", `/statements/${encodeURIComponent(statement_id)}/split`, body, undefined, options);
  }

  keepBoth(fact_id, body, options) {
    return this.call("POST", `/facts/${encodeURIComponent(fact_id)}/keep-both`, body, undefined, options);
  }

  recall(body, options) {
    return this.call("POST", `/recall`, body, undefined, options);
  }

  giveFeedback(recall_id, body, options) {
    return this.call("POST", `/recalls/${encodeURIComponent(recall_id)}/feedback`, body, undefined, options);
  }

  assembleContext(body, options) {
    return this.call("POST", `/context/assemble`, body, undefined, options);
  }

  predict(body, options) {
    return this.call("POST", `/context/predict`, body, undefined, options);
  }

  startEpisode(body, options) {
    return this.call("POST", `/episodes`, body, undefined, options);
  }

  recordEpisode(body, options) {
    return this.call("POST", `/episodes/record`, body, undefined, options);
  }

  getEpisode(episode_id, options) {
    return this.call("GET", `/episodes/${encodeURIComponent(episode_id)}`, undefined, undefined, options);
  }

  updateEpisode(episode_id, body, options) {
    return this.call("PATCH", `/episodes/${encodeURIComponent(episode_id)}`, body, undefined, options);
  }

  closeEpisode(episode_id, body, options) {
    return this.call("POST", `/episodes/${encodeURIComponent(episode_id)}/close`, body, undefined, options);
  }

  retryEpisode(episode_id, options) {
    return this.call("POST", `/episodes/${encodeURIComponent(episode_id)}/retry`, undefined, undefined, options);
  }

  storeProcedure(body, options) {
    return this.call("POST", `/procedures`, body, undefined, options);
  }

  getProcedure(procedure_id, options) {
    return this.call("GET", `/procedures/${encodeURIComponent(procedure_id)}`, undefined, undefined, options);
  }

  activateProcedure(procedure_id, body, options) {
    return this.call("POST", `/procedures/${encodeURIComponent(procedure_id)}/activate`, body, undefined, options);
  }

  recordProcedureOutcome(procedure_id, body, options) {
    return this.call("POST", `/procedures/${encodeURIComponent(procedure_id)}/outcome`, body, undefined, options);
  }

  listCensors(options) {
    return this.call("GET", `/censors`, undefined, undefined, options);
  }

  addCensor(body, options) {
    return this.call("POST", `/censors`, body, undefined, options);
  }

  checkCensors(body, options) {
    return this.call("POST", `/censors/check`, body, undefined, options);
  }

  reportFalsePositive(censor_id, body, options) {
    return this.call("POST", `/censors/${encodeURIComponent(censor_id)}/false-positive`, body, undefined, options);
  }

  focus(session_id, body, options) {
    return this.call("PUT", `/sessions/${encodeURIComponent(session_id)}/focus`, body, undefined, options);
  }

  loadContext(session_id, body, options) {
    return this.call("POST", `/sessions/${encodeURIComponent(session_id)}/load`, body, undefined, options);
  }

  getWorkingMemory(session_id, options) {
    return this.call("GET", `/sessions/${encodeURIComponent(session_id)}`, undefined, undefined, options);
  }

  endSession(session_id, body, options) {
    return this.call("POST", `/sessions/${encodeURIComponent(session_id)}/end`, body, undefined, options);
  }

  listContradictions(query, options) {
    return this.call("GET", `/contradictions`, undefined, query, options);
  }

  resolveContradiction(contradiction_id, body, options) {
    return this.call("POST", `/contradictions/${encodeURIComponent(contradiction_id)}/resolve`, body, undefined, options);
  }

  forget(memory_id, body, options) {
    return this.call("POST", `/memories/${encodeURIComponent(memory_id)}/forget`, body, undefined, options);
  }

  restore(memory_id, body, options) {
    return this.call("POST", `/memories/${encodeURIComponent(memory_id)}/restore`, body, undefined, options);
  }

  pin(memory_id, body, options) {
    return this.call("POST", `/memories/${encodeURIComponent(memory_id)}/pin`, body, undefined, options);
  }

  unpin(memory_id, body, options) {
    return this.call("POST", `/memories/${encodeURIComponent(memory_id)}/unpin`, body, undefined, options);
  }

  update(memory_id, body, options) {
    return this.call("PATCH", `/memories/${encodeURIComponent(memory_id)}`, body, undefined, options);
  }

  undoSource(body, options) {
    return this.call("POST", `/sources/undo`, body, undefined, options);
  }

  listWebhooks(options) {
    return this.call("GET", `/webhooks`, undefined, undefined, options);
  }

  addWebhook(body, options) {
    return this.call("POST", `/webhooks`, body, undefined, options);
  }

  removeWebhook(webhook_id, options) {
    return this.call("DELETE", `/webhooks/${encodeURIComponent(webhook_id)}`, undefined, undefined, options);
  }

  consolidate(body, options) {
    return this.call("POST", `/consolidate`, body, undefined, options);
  }

  getConsolidation(run, options) {
    return this.call("GET", `/consolidate/${encodeURIComponent(run)}`, undefined, undefined, options);
  }

  getReport(query, options) {
    return this.call("GET", `/report`, undefined, query, options);
  }
}
