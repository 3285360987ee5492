import { MINUTE_MS, SECOND_MS } from '../../../core/time/time'
import type { Invocation, InvocationResult } from '../sdk/api-commands'
import { readRunnerProgram } from '../../bootstrap'
import { pause } from '../../calls'
import { transient } from '../errors'
import type { Host } from '../host'
import { readMachineFile } from '../launch/template'

/** Returns a program of `machine/` preceded by its specification; quoted twice, so that no shell interprets any of it. */
export function script(name: string, spec: Record<string, unknown>): string[] {
  const text = Buffer.from(JSON.stringify(spec)).toString('base64')
  const program = name === STARTER ? starter() : readMachineFile(name)
  return [
    '#!/bin/sh',
    "exec python3 -IS - <<'CRUCIBLE'",
    `import base64; SPEC = base64.b64decode("${text}").decode("utf-8")`,
    ...program.trimEnd().split('\n'),
    'CRUCIBLE',
  ]
}

/** The program that starts runners, which has parts that others like it have, too. */
const STARTER = 'start.py'

function starter(): string {
  return readRunnerProgram(`${readMachineFile('local_disks.py')}\n${readMachineFile(STARTER)}`)
}

export interface MachineCommand {
  machineId: string
  /** Identifies the command and its purpose, so that a repetition finds the earlier one; at most 100 characters. */
  comment: string
  lines: string[]
  /** Maximum age of an earlier answer that may be reused; missing if never. */
  goodForMs: number
  /** Whether an answer is complete; a truncated one is requested again. */
  isWhole?: (answer: CommandAnswer) => boolean
}

/** The output of a command. */
export interface CommandAnswer {
  exitCode: number
  stdout: string
  stderr: string
}

/** The agent fetches a command within this time, or never. */
const DELIVERY_TIMEOUT_MS = MINUTE_MS
/** Our commands take a second; one that downloads a program over a slow line takes longer. */
const RUN_TIMEOUT_MS = 4 * MINUTE_MS
/** A verb never waits for a machine: after this the caller asks again, and continues to wait for the same command. */
const WAIT_MS = 8 * SECOND_MS
const ASKED_AGAIN_MS = SECOND_MS
const FIRST_LOOK_MS = 50
/**
 * A start waits for two answers. No rate limit for these queries is documented; few callers ask at once, because commands are sent at most
 * five a second (`limiter.ts`).
 */
const LOOK_MAX_MS = 500

const UNDER_WAY = ['Pending', 'InProgress', 'Delayed', 'Cancelling']

/**
 * Runs a short, repeatable command on a machine and returns its output. The provider has no idempotency token for commands: one in progress
 * is awaited instead of sent again. Throws `transient` while there is no answer.
 */
export async function runOnMachine(
  host: Host,
  command: MachineCommand,
  signal: AbortSignal,
): Promise<CommandAnswer> {
  const { machineId, comment, lines, isWhole = () => true } = command
  const before = (await host.api.commands.invocations(machineId, signal)).find(
    (one) => one.comment === comment,
  )
  if (before !== undefined && isStillGood(before, command, host.deps.clock())) {
    const answer = answerOf(await waitFor(host, { id: before.commandId, machineId }, signal))
    if (isWhole(answer)) return answer
  }
  const id = await host.api.commands.send(
    {
      machineId,
      comment,
      lines,
      deliveryTimeoutMs: DELIVERY_TIMEOUT_MS,
      runTimeoutMs: RUN_TIMEOUT_MS,
    },
    signal,
  )
  return answerOf(await waitFor(host, { id, machineId }, signal))
}

function isStillGood(
  { status, requestedAtMs }: Invocation,
  { goodForMs }: MachineCommand,
  nowMs: number,
): boolean {
  if (UNDER_WAY.includes(status)) return true
  return status === 'Success' && nowMs - requestedAtMs <= goodForMs
}

async function waitFor(
  host: Host,
  { id, machineId }: { id: string; machineId: string },
  signal: AbortSignal,
): Promise<InvocationResult> {
  const untilMs = performance.now() + WAIT_MS
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, LOOK_MAX_MS)) {
    await pause(waitMs, signal)
    const result = await host.api.commands.result(id, machineId, signal)
    if (result !== undefined && !UNDER_WAY.includes(result.status)) return result
    if (performance.now() >= untilMs)
      throw transient(`the machine ${machineId} has not answered the command ${id} yet`, ASKED_AGAIN_MS)
  }
}

function answerOf({ status, details, exitCode, stdout, stderr }: InvocationResult): CommandAnswer {
  // A command that ran to its end reports its own outcome; others may or may not have run.
  if (status === 'Success' || (status === 'Failed' && exitCode > 0)) return { exitCode, stdout, stderr }
  throw transient(`a command to the machine failed: ${details === '' ? status : details}`)
}
