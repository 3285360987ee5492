/**
 * A child process that launches an order and dies by SIGKILL before its n-th step towards it, a step being a call that
 * changes the disk or starts a process. Arguments: the step (0 to live), then root, runner and order as JSON.
 */
import childProcess from 'node:child_process'
import files, { copyFile } from 'node:fs/promises'
import { createLocalBackend } from '../../../backends/local'
import type { LocalConfig } from '../../../backends/local/config'
import type { Order } from '../../../core/job/plan'

const { step, config, runnerPath, order } = JSON.parse(process.argv.at(-1)!) as {
  step: number
  config: LocalConfig
  runnerPath: string
  order: Order
}

let steps = 0

function die<Call extends (...args: never[]) => unknown>(call: Call): Call {
  const counted = (...args: never[]): unknown => {
    if (++steps === step) process.kill(process.pid, 'SIGKILL')
    return call(...args)
  }
  return counted as Call
}

// Compiled to CommonJS, the backend takes these from their modules at each call, and so gets the replacements.
const stepping = {
  mkdir: files.mkdir,
  open: files.open,
  rename: files.rename,
  link: files.link,
  rm: files.rm,
}
for (const [name, call] of Object.entries(stepping)) Object.assign(files, { [name]: die(call as never) })
Object.assign(childProcess, { spawn: die(childProcess.spawn as never) })

async function main(): Promise<void> {
  const deps = { clock: Date.now, fetchRunner: (_: string, toPath: string) => copyFile(runnerPath, toPath) }
  const backend = await createLocalBackend(config, deps)
  const outcome = await backend.launch(order, { signal: new AbortController().signal })
  process.stdout.write(JSON.stringify({ outcome: outcome.kind, steps }))
}

void main()
