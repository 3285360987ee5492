import type { Command } from 'commander'
import { knownJobs } from '../../../client/job/find-job'
import type { Cli } from '../../cli'

/** Limit on completed jobs; more are too many to read. */
const SHOWN_MAX = 100

/** Shells expand the words that they complete, such as `$(...)`. Intake accepts no other ids and names. */
const SAFE = /^[\w.-]+$/

/** Ids and names of jobs, one per line, quickly: from the store alone, and no output instead of an error. */
export function define(command: Command, cli: Cli): void {
  command.action(async () => {
    const jobs = await knownJobs(cli.context()).catch(() => [])
    const shown = jobs.slice(0, SHOWN_MAX)
    const words = new Set([...shown.map(({ id }) => id), ...shown.map(({ name }) => name)])
    for (const word of words) if (SAFE.test(word)) cli.out.line(word)
  })
}
