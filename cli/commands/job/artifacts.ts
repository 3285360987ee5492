import { resolve } from 'node:path'
import type { Command } from 'commander'
import { defined } from '../../../core/defined'
import { downloadArtifacts, pageOfArtifacts } from '../../../client/job/artifacts'
import { CrucibleError } from '../../../client/errors'
import { findJob } from '../../../client/job/find-job'
import { countArgument } from '../../kit/arguments'
import type { Cli } from '../../cli'
import { tellGaps } from '../../kit/gaps'
import { examples } from '../../examples'
import { shellQuoted } from '../../kit/shell'
import { bytes, NOTHING, plural } from '../../kit/words'

/** Artifacts on a page. */
const PAGE = 1_000
/** Far more artifacts than a job can have. */
const LIMIT_MAX = 1e9

/** Upper bound on the number of attempts of a job. */
const ATTEMPT_MAX = 1_000_000

interface Options {
  download?: string
  attempt?: number
  only?: string[]
  limit: number
  after?: string
  force?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description(
      'List the artifacts of a job, or download them into a folder: the newest version of each file. Versions of earlier attempts are kept.',
    )
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--attempt <number>', 'only the artifacts of this attempt', countArgument(ATTEMPT_MAX))
    .option(
      '--only <path>',
      'only this path or the contents of this folder; may be repeated',
      (path: string, before: string[] = []) => [...before, path],
    )
    .option(
      '--limit <count>',
      `list at most this many; with more, the next page is named`,
      countArgument(LIMIT_MAX),
      PAGE,
    )
    .option('--after <path>', 'list those after this path: the next page')
    .option('--download <folder>', 'download everything there; existing files with other content are kept')
    .option('--force', 'replace existing files')
    .addHelpText(
      'after',
      examples(
        ['crucible artifacts char-lm', 'list them'],
        ['crucible artifacts job-3f --download results', 'download them to results/'],
        ['crucible artifacts job-3f --only figures --download .', 'only one folder of them'],
        ['crucible artifacts job-3f --attempt 2', 'those of the second attempt'],
      ),
    )
    .action((job: string, options: Options) => artifacts(cli, job, options))
}

/** `3, 2, 1`, or `9, 8, 7, ...` */
function shortened(attempts: number[]): string {
  const more = attempts.length > NAMED_MAX ? ['...'] : []
  return [...attempts.slice(0, NAMED_MAX), ...more].join(', ') || NOTHING
}

const NAMED_MAX = 3

async function artifacts(
  cli: Cli,
  meant: string,
  { download, force, attempt, only, limit, after }: Options,
): Promise<void> {
  const { out } = cli
  if (force === true && download === undefined) {
    throw new CrucibleError('usage', '--force requires --download.')
  }
  if (after !== undefined && download !== undefined)
    throw new CrucibleError('usage', '--after lists a page, and --download takes everything: leave one out.')
  if (download === '') throw new CrucibleError('usage', '--download requires a folder.')
  const context = cli.context()
  const id = await findJob(context, meant)
  const target = download === undefined ? undefined : resolve(download)
  const filter = defined({ attempt, only })
  const { artifacts: found, ...page } =
    target === undefined
      ? await pageOfArtifacts(context, id, { ...filter, limit, ...defined({ after }) })
      : {
          artifacts: await downloadArtifacts(context, id, {
            toFolder: target,
            isForced: force === true,
            ...filter,
          }),
        }
  out.json({ id, artifacts: found, ...page, folder: target, incomplete: tellGaps(cli, context.gaps) })
  if (found.length === 0 && context.gaps.length > 0) return
  if (found.length === 0)
    return out.line(
      after === undefined ? `${id} has no artifacts.` : `${id} has no artifacts after ${after}.`,
    )
  out.table(
    ['PATH', 'SIZE', 'SHA-256', 'ATTEMPT', 'OLDER'],
    found.map(({ path, sizeBytes, sha256, attempt: by, olderAttempts }) => [
      path,
      bytes(sizeBytes),
      sha256?.slice(0, 12) ?? NOTHING,
      String(by ?? NOTHING),
      shortened(olderAttempts),
    ]),
    { right: ['SIZE', 'ATTEMPT'], wrapped: 'PATH', optional: ['SHA-256'] },
  )
  if ('next' in page && page.next !== null)
    out.line(
      `${found.length} of ${plural(page.total, 'artifact')}; the next page: --after ${shellQuoted(page.next)}`,
    )
  if (target !== undefined) out.line(`${plural(found.length, 'file')} downloaded to ${target} and verified.`)
}
