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
    if (/\/(\/|$)/.test(path.slice(1))) throw new TypeError("an id or a name in " + path + " is empty");
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

  learnDeferred(body, options) {
    return this.call("POST", `/facts/deferred`, body, undefined, options);
  }

  countFacts(options) {
    return this.call("GET", `/facts/count`, undefined, undefined, options);
  }

  getFact(fact_id, options) {
    return this.call("GET", `/facts/${encodeURIComponent(fact_id)}`, undefined, undefined, options);
  }

  confirmFact(fact_id, body, options) {
    return this.call("POST", `/facts/${encodeURIComponent(fact_id)}/confirm`, body, undefined, options);
  }

  supersedeFact(fact_id, body, options) {
    return this.call("POST", `/facts/${encodeURIComponent(fact_id)}/supersede`, body, undefined, options);
  }

  listPredecessors(fact_id, options) {
    return this.call("GET", `/facts/${encodeURIComponent(fact_id)}/predecessors`, undefined, undefined, options);
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

  getFullText(episode_id, options) {
    return this.call("GET", `/episodes/${encodeURIComponent(episode_id)}/full-text`, undefined, undefined, options);
  }

  listArtifacts(episode_id, options) {
    return this.call("GET", `/episodes/${encodeURIComponent(episode_id)}/artifacts`, undefined, undefined, options);
  }

  recordStep(body, options) {
    return this.call("POST", `/episodes/steps`, body, undefined, options);
  }

  closeEpisode(episode_id, body, options) {
    return this.call("POST", `/episodes/${encodeURIComponent(episode_id)}/close`, body, undefined, options);
  }

  retryEpisode(episode_id, options) {
    return this.call("POST", `/episodes/${encodeURIComponent(episode_id)}/retry`, undefined, undefined, options);
  }

  listProcedures(query, options) {
    return this.call("GET", `/procedures`, undefined, query, options);
  }

  storeProcedure(body, options) {
    return this.call("POST", `/procedures`, body, undefined, options);
  }

  getProcedure(procedure_id, options) {
    return this.call("GET", `/procedures/${encodeURIComponent(procedure_id)}`, undefined, undefined, options);
  }

  relatedProcedures(procedure_id, query, options) {
    return this.call("GET", `/procedures/${encodeURIComponent(procedure_id)}/related`, undefined, query, options);
  }

  learnWorkflows(body, options) {
    return this.call("POST", `/procedures/learn`, body, undefined, options);
  }

  activateProcedure(procedure_id, body, options) {
    return this.call("POST", `/procedures/${encodeURIComponent(procedure_id)}/activate`, body, undefined, options);
  }

  recordProcedureOutcome(procedure_id, body, options) {
    return this.call("POST", `/procedures/${encodeURIComponent(procedure_id)}/outcome`, body, undefined, options);
  }

  listCensors(query, options) {
    return this.call("GET", `/censors`, undefined, query, options);
  }

  addCensor(body, options) {
    return this.call("POST", `/censors`, body, undefined, options);
  }

  getCensor(censor_id, options) {
    return this.call("GET", `/censors/${encodeURIComponent(censor_id)}`, undefined, undefined, options);
  }

  updateCensor(censor_id, body, options) {
    return this.call("PATCH", `/censors/${encodeURIComponent(censor_id)}`, body, undefined, options);
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

  unload(session_id, body, options) {
    return this.call("POST", `/sessions/${encodeURIComponent(session_id)}/unload`, body, undefined, options);
  }

  openThread(session_id, body, options) {
    return this.call("POST", `/sessions/${encodeURIComponent(session_id)}/threads`, body, undefined, options);
  }

  closeThread(session_id, body, options) {
    return this.call("POST", `/sessions/${encodeURIComponent(session_id)}/threads/close`, body, undefined, options);
  }

  endSession(session_id, body, options) {
    return this.call("POST", `/sessions/${encodeURIComponent(session_id)}/end`, body, undefined, options);
  }

  listDecisions(query, options) {
    return this.call("GET", `/decisions`, undefined, query, options);
  }

  recordDecision(body, options) {
    return this.call("POST", `/decisions`, body, undefined, options);
  }

  getDecision(decision_id, options) {
    return this.call("GET", `/decisions/${encodeURIComponent(decision_id)}`, undefined, undefined, options);
  }

  resolveDecision(decision_id, body, options) {
    return this.call("POST", `/decisions/${encodeURIComponent(decision_id)}/resolve`, body, undefined, options);
  }

  listContradictions(query, options) {
    return this.call("GET", `/contradictions`, undefined, query, options);
  }

  listDoubts(query, options) {
    return this.call("GET", `/doubts`, undefined, query, options);
  }

  resolveContradiction(contradiction_id, body, options) {
    return this.call("POST", `/contradictions/${encodeURIComponent(contradiction_id)}/resolve`, body, undefined, options);
  }

  rejectRuling(contradiction_id, options) {
    return this.call("POST", `/contradictions/${encodeURIComponent(contradiction_id)}/reject`, undefined, undefined, options);
  }

  publish(body, options) {
    return this.call("POST", `/events`, body, undefined, options);
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

  listMemories(query, options) {
    return this.call("GET", `/memories`, undefined, query, options);
  }

  getMemory(memory_id, options) {
    return this.call("GET", `/memories/${encodeURIComponent(memory_id)}`, undefined, undefined, options);
  }

  update(memory_id, body, options) {
    return this.call("PATCH", `/memories/${encodeURIComponent(memory_id)}`, body, undefined, options);
  }

  getHistory(memory_id, options) {
    return this.call("GET", `/memories/${encodeURIComponent(memory_id)}/history`, undefined, undefined, options);
  }

  undo(memory_id, body, options) {
    return this.call("POST", `/memories/${encodeURIComponent(memory_id)}/undo`, body, undefined, options);
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

  undoSource(body, options) {
    return this.call("POST", `/sources/undo`, body, undefined, options);
  }

  consolidate(body, options) {
    return this.call("POST", `/consolidate`, body, undefined, options);
  }

  getConsolidation(run, options) {
    return this.call("GET", `/consolidate/${encodeURIComponent(run)}`, undefined, undefined, options);
  }

  undoNights(body, options) {
    return this.call("POST", `/consolidate/undo`, body, undefined, options);
  }

  getReport(query, options) {
    return this.call("GET", `/report`, undefined, query, options);
  }
}
