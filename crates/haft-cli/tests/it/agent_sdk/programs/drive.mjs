// Drives Haft through the Claude Agent SDK for TypeScript: one scenario, whose facts are printed as one JSON object.

import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { createSdkMcpServer, query, tool } = await import(pathToFileURL(process.env.HAFT_AGENT_SDK_MODULE).href);
const { z } = await import(pathToFileURL(process.env.HAFT_AGENT_SDK_ZOD).href);

const haft = process.env.HAFT_UNDER_TEST;
const options = (more) => ({ pathToClaudeCodeExecutable: haft, cwd: process.cwd(), ...more });

class Turn {
  types = [];
  texts = [];
  results = [];
  progress = "";
  uuids = [];

  take(message) {
    switch (message.type) {
      case "system":
        if (message.subtype === "init") {
          this.session = message.session_id;
          this.mode = message.permissionMode;
          this.tools = message.tools;
        }
        this.types.push(`system/${message.subtype}`);
        break;
      case "tool_progress":
        this.progress += message.output ?? "";
        break;
      case "assistant":
        this.types.push("assistant");
        this.texts.push(...message.message.content.filter((block) => block.text).map((block) => block.text));
        break;
      case "user":
        if (message.isReplay) {
          this.uuids.push(message.uuid);
          break;
        }
        this.types.push("user");
        for (const block of message.message.content) {
          const text = typeof block.content === "string" ? block.content : JSON.stringify(block.content);
          this.results.push({ error: !!block.is_error, text });
        }
        break;
      case "result":
        this.types.push("result");
        this.result = message;
    }
  }

  facts() {
    const { subtype, is_error, result, permission_denials } = this.result;
    return { subtype, is_error, result, denials: permission_denials.map((denial) => denial.tool_name) };
  }
}

/** One query; an error result ends the SDK's stream with an exception, after it was handed over. */
async function run(prompt, more) {
  const turn = new Turn();
  try {
    for await (const message of query({ prompt, options: options(more) })) turn.take(message);
  } catch (error) {
    if (!turn.result?.is_error) throw error;
  }
  return turn;
}

/** A session of several turns. */
class Client {
  #queue = [];
  #wake = () => {};

  constructor(more) {
    this.query = query({ prompt: this.#prompts(), options: options(more) });
  }

  async *#prompts() {
    for (;;) {
      while (this.#queue.length === 0) await new Promise((resolve) => (this.#wake = resolve));
      const next = this.#queue.shift();
      if (next === null) return;
      yield next;
    }
  }

  #push(line) {
    this.#queue.push(line);
    this.#wake();
  }

  async ask(content, onMessage = () => {}, uuid = undefined) {
    const message = { role: "user", content };
    this.#push({ type: "user", message, parent_tool_use_id: null, session_id: "", ...(uuid && { uuid }) });
    const turn = new Turn();
    for (;;) {
      const { value, done } = await this.query.next();
      if (done) throw new Error("the stream has ended");
      await onMessage(value);
      turn.take(value);
      if (value.type === "result") return turn;
    }
  }

  async close() {
    this.#push(null);
    try {
      while (!(await this.query.next()).done);
    } catch (error) {
      if (!`${error}`.includes("error result")) throw error;
    }
  }
}

const scenarios = {
  async one_shot() {
    const turn = await run("Hello");
    return { types: turn.types, ...turn.facts() };
  },

  async multi_turn() {
    const client = new Client();
    const first = await client.ask("First");
    const second = await client.ask("Second");
    await client.close();
    return { same: first.session === second.session, texts: [...first.texts, ...second.texts] };
  },

  async can_use_tool() {
    const asked = [];
    const canUseTool = async (name, input, { toolUseID }) => {
      asked.push([name, input.command, toolUseID]);
      if (input.command.includes("secret")) return { behavior: "deny", message: "Not that one." };
      if (input.command.includes("other")) {
        return { behavior: "allow", updatedInput: { ...input, command: "echo changed" } };
      }
      return { behavior: "allow", updatedInput: input };
    };
    const turn = await run("Go", { canUseTool });
    return { asked, results: turn.results, ...turn.facts() };
  },

  async hooks() {
    const seen = [];
    const before = async (hook, call) => {
      seen.push([hook.hook_event_name, hook.tool_name, call]);
      if (!JSON.stringify(hook.tool_input).includes("forbidden")) return {};
      return {
        hookSpecificOutput: {
          hookEventName: "PreToolUse",
          permissionDecision: "deny",
          permissionDecisionReason: "The host forbids it.",
        },
      };
    };
    const after = async (hook, call) => {
      seen.push([hook.hook_event_name, hook.tool_name, call]);
      return { hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext: "Seen by the host." } };
    };
    const fail = async () => {
      throw new Error("the guard is broken");
    };
    const hooks = {
      PreToolUse: [
        { matcher: "Bash", hooks: [before] },
        { matcher: "Write", hooks: [fail], onFailure: "block" },
      ],
      PostToolUse: [{ matcher: "Bash", hooks: [after] }],
    };
    const turn = await run("Go", { hooks, permissionMode: "acceptEdits", allowedTools: ["Bash"] });
    return { seen, results: turn.results };
  },

  async sdk_server() {
    const add = tool("add", "Adds two numbers", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `sum ${a + b}` }],
    }));
    const server = createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    const client = new Client({ mcpServers: { calc: server }, allowedTools: ["mcp__calc__add"] });
    const turn = await client.ask("Add");
    const status = await client.query.mcpServerStatus();
    await client.close();
    const servers = status.map((server) => [server.name, server.status]);
    return { offered: turn.tools.includes("mcp__calc__add"), results: turn.results, servers };
  },

  async interrupt() {
    const client = new Client({ includePartialMessages: true });
    const first = await client.ask("Wait", async (message) => {
      if (message.type === "stream_event" && message.event.type === "content_block_delta") {
        await client.query.interrupt();
      }
    });
    const second = await client.ask("Go on");
    await client.close();
    return { first: first.result.subtype, second: second.facts().result };
  },

  async resume() {
    const first = await run("First");
    const second = await run("Second", { resume: first.session });
    const forked = await run("Third", { resume: first.session, forkSession: true });
    return { same: first.session === second.session, forked: forked.session !== first.session };
  },

  async structured_output() {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const turn = await run("Count", { outputFormat: { type: "json_schema", schema } });
    return { subtype: turn.result.subtype, output: turn.result.structured_output };
  },

  async max_turns() {
    const permissions = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };
    const { result } = await run("Go", { maxTurns: 1, ...permissions });
    return { subtype: result.subtype, is_error: result.is_error, turns: result.num_turns };
  },

  async permission_modes() {
    const client = new Client({ permissionMode: "plan" });
    const plan = await client.ask("Write");
    await client.query.setPermissionMode("acceptEdits");
    const edits = await client.ask("Write");
    await client.close();
    return {
      modes: [plan.mode, edits.mode],
      errors: [...plan.results, ...edits.results].map((result) => result.error),
      denials: [plan.facts().denials, edits.facts().denials],
    };
  },

  async rewind() {
    const permissions = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };
    const more = { ...permissions, enableFileCheckpointing: true, extraArgs: { "replay-user-messages": null } };
    const client = new Client(more);
    const first = await client.ask("Note");
    const own = "8d3c2a44-1c0e-4f6b-9a51-5d1c58a0c001";
    await client.ask("Change", () => {}, own);
    const before = readdirSync(".").sort();
    await client.query.rewindFiles(own);
    await client.close();
    return { before, after: readdirSync(".").sort(), replayed: first.uuids.length };
  },

  async live_output() {
    const permissions = { permissionMode: "bypassPermissions", allowDangerouslySkipPermissions: true };
    return { output: (await run("Go", permissions)).progress };
  },
};

console.log(JSON.stringify(await scenarios[process.argv[2]]()));
