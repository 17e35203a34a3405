// The types of the API, as far as the page uses them. The server's src/api/types/ says what the fields mean.
// Only the type checker reads this file.

/** @typedef {'view' | 'approve' | 'act'} Role */
/** @typedef {{name: string, model: string | null, is_ready: boolean, is_default: boolean}} Provider */
/** @typedef {{version: string, role: Role, position: number, workspace: string, now: number, providers: Provider[]}} Meta */
/**
 * @typedef {{id: string, name: string | null, title: string | null, workspace: string, dialect: string,
 *   entry_point: string, parent: string | null, started_at: number, calls: number, has_run: boolean,
 *   is_driven: boolean}} Session
 */
/** @typedef {{position: number, now: number, questions: ListedQuestion[], calls: CallSummary[], sessions: Session[]}} Now */
/** @typedef {{sessions: Session[], next: string | null}} SessionList */
/**
 * @typedef {{provider: string, model: string, turns: number, input_tokens: number, output_tokens: number,
 *   cost_usd: number | null, in_turn: boolean, can_interrupt: boolean, stopped: string | null}} Run
 */
/** @typedef {{session: Session, kind: string, description: string, call: number | null}} Agent */
/** @typedef {{from: number, next: number, text: string}} LiveOutput */
/** @typedef {{session: Session, run: Run | null, answer: LiveOutput | null, agents: Agent[]}} SessionDetail */
/** @typedef {'running' | 'completed' | 'failed' | 'denied' | 'interrupted'} CallState */
/**
 * @typedef {{id: number, session: string, call_id: string, tool: string, about: string, workspace: string,
 *   state: CallState, started_at: number, duration_us: number, change_count: number,
 *   reversible: 'yes' | 'partly' | 'no', undone_by: number | null, undoes: number[], exit_code: number | null,
 *   error_kind: string | null, denials: number, output?: LiveOutput}} CallSummary
 */
/** @typedef {{calls: CallSummary[], next: number | null}} CallList */
/** @typedef {{verdict: string, reason: string, rule: string | null}} Decision */
/** @typedef {Decision & {effects: string[]}} Explained */
/**
 * @typedef {{summary: CallSummary, input: unknown, input_note: string | null, effects: string[],
 *   decision: Decision | null, error: string | null, result: string | null, result_is_cut: boolean,
 *   full_output: string | null, enforcement: string | null, denials: {what: string, remedy: string | null}[],
 *   runs_on_build: string[], irreversible_why: string | null, changes: ChangeList, agents: string[]}} Call
 */
/** @typedef {{kind: string, size?: number, hash?: string, mode?: string, target?: string}} PathState */
/**
 * @typedef {{path: string, what: 'created' | 'modified' | 'deleted' | 'mode' | 'moved', moved_to: string | null,
 *   moved_from: string | null, before: PathState, after: PathState, contested: boolean, calls?: number[],
 *   merged?: TextChanges}} PathChange
 */
/** @typedef {{changes: PathChange[], total: number, next: number | null}} ChangeList */
/** @typedef {{tag: ' ' | '+' | '-', text: string}} DiffLine */
/** @typedef {{old_start: number, new_start: number, lines: DiffLine[]}} DiffHunk */
/** @typedef {{hunks: DiffHunk[], added: number, removed: number, is_cut: boolean}} TextChanges */
/**
 * @typedef {{kind: 'text', changes: TextChanges} | {kind: 'image', before: string | null, after: string | null}
 *   | {kind: 'binary'} | {kind: 'too_large'} | {kind: 'unknown'}} FileDiff
 */
/** `missing` is the number of calls of which an exported session does not have all changes.
 * @typedef {{workspace: string, changes: ChangeList, calls: number, is_cut: boolean, missing?: number}} Files
 */
/**
 * @typedef {{what: 'file', path: string, old_size: number | null, new_size: number, text: TextChanges | null}
 *   | {what: 'setting', name: string, before: unknown, after: unknown}} ProposedChange
 */
/**
 * @typedef {{kind: 'permission', call_id: string, tool: string, input: unknown, effects: string[], irreversible?: boolean,
 *   reason: string, asked_by: string | null, rule: string | null, changes: ProposedChange[],
 *   changes_unknown: string | null, agent: string | null}} PermissionBody
 */
/** @typedef {{kind: 'host', command: string, host: string, port: number, entry: string}} HostBody */
/** @typedef {{label: string, description: string}} Choice */
/** @typedef {{question: string, header: string, choices: Choice[], several: boolean}} UserQuestion */
/** @typedef {{kind: 'choices', questions: UserQuestion[]}} ChoicesBody */
/** @typedef {{kind: 'plan', plan: string | null, allow: [string, string][]}} PlanBody */
/**
 * @typedef {{id: number, session: string, workspace: string, asked_at: number, is_open: boolean,
 *   answered_by: string | null, body: PermissionBody | HostBody | ChoicesBody | PlanBody}} Question
 */
/** A question of a list or an event; without its body if that is long.
 * @typedef {Omit<Question, 'body'> & {body: Question['body'] | null, is_cut?: boolean}} ListedQuestion
 */
/** @typedef {{rule_added: string | null, rule_failed?: string | null}} Answered */
/**
 * @typedef {{answer: 'allow', hold: 'once' | 'session' | 'always'} | {answer: 'deny', reason: string | null}
 *   | {answer: 'choices', choices: string[][]}} Answer
 */
/** @typedef {{call_id: string, tool: string, about: string}} MessageCall */
/**
 * @typedef {{seq: number, at: number, role: 'user' | 'assistant' | 'note' | 'end', text: string, is_cut?: boolean, thinking?: string,
 *   calls?: MessageCall[], images?: number, model?: string, input_tokens?: number, output_tokens?: number,
 *   cost_usd?: number}} Message
 */
/** @typedef {{messages: Message[], next: number, more: boolean}} MessageList */
/** @typedef {{calls?: number[], session?: string, from?: number, redo?: string}} UndoWhat */
/** @typedef {{what: UndoWhat, except: string[], merge: boolean, force: boolean, plan?: string}} UndoRequest */
/** @typedef {{call: number, why: string}} BlockedCall */
/**
 * @typedef {{plan: string, calls: CallSummary[], changes: ChangeList,
 *   conflicts: {path: string, found: string, changed_by: number | null, blocks: boolean}[],
 *   blocked: BlockedCall[], partly: BlockedCall[], merged: {path: string, changes: TextChanges}[], left_out: number}} UndoPlan
 */
/** @typedef {{call: number, message: string}} UndoDone */
/**
 * @typedef {{verdict: 'deny' | 'ask' | 'allow', text: string, origin: string, is_removable: boolean, matched: number,
 *   last_matched: number | null}} Rule
 */
/** @typedef {{workspace: string, mode: string, rules: Rule[], warnings: string[]}} RuleList */
/** @typedef {{workspace: string, verdict: string, text: string}} RuleChange */
/** @typedef {{dialect: string, tools: {name: string, description: string, input_schema: any}[]}} ToolList */
/** @typedef {{name: string, data: string}} Attachment */
/**
 * @typedef {{prompt: string, workspace?: string, provider?: string, model?: string, permission_mode?: string,
 *   attachments: Attachment[]}} NewRun
 */
/** @typedef {{prompt: string, provider?: string, model?: string, attachments: Attachment[]}} NewMessage */

/** An event of the stream: `id` is its position, or 0. What `data` is depends on the name in `event`.
 * @typedef {{event: string, id: number, data: any}} LiveEvent */

/** An event as it is streamed: its data is JSON.
 * @typedef {{event: string, id: number, data: string}} StreamedEvent */
/** @typedef {'connecting' | 'live' | 'waiting' | 'refused'} StreamState */

export {};
