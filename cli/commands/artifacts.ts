import { resolve } from 'node:path'
import type { Command } from 'commander'
import { downloadArtifacts, listArtifacts } from '../../client/artifacts'
import { CrucibleError } from '../../client/errors'
import { findJob } from '../../client/find-job'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { bytes, NOTHING, plural } from '../words'

interface Options {
  download?: string
  force?: boolean
}

export function define(command: Command, cli: Cli): void {
  command
    .description('List what a job left, or copy it into a folder.')
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--download <folder>', 'copy everything there; other files of the same names are left alone')
    .option('--force', 'replace them')
    .addHelpText(
      'after',
      examples(
        ['crucible artifacts char-lm', 'list them'],
        ['crucible artifacts job-3f --download results', 'copy them to results/'],
      ),
    )
    .action((job: string, options: Options) => artifacts(cli, job, options))
}

async function artifacts(cli: Cli, meant: string, { download, force }: Options): Promise<void> {
  const { out } = cli
  if (force === true && download === undefined) {
    throw new CrucibleError('usage', '--force is for --download.')
  }
  if (download === '') throw new CrucibleError('usage', '--download names no folder.')
  const context = cli.context()
  const id = await findJob(context, meant)
  const target = download === undefined ? undefined : resolve(download)
  const found =
    target === undefined
      ? await listArtifacts(context, id)
      : await downloadArtifacts(context, id, { toFolder: target, isForced: force === true })
  out.json({ id, artifacts: found, ...(target === undefined ? {} : { folder: target }) })
  if (found.length === 0) return out.line(`${id} has left nothing so far.`)
  out.table(
    ['PATH', 'SIZE', 'SHA-256'],
    found.map(({ path, sizeBytes, sha256 }) => [path, bytes(sizeBytes), sha256?.slice(0, 12) ?? NOTHING]),
    { right: ['SIZE'], wrapped: 'PATH', optional: ['SHA-256'] },
  )
  if (target !== undefined) out.line(`${plural(found.length, 'file')} copied to ${target} and compared.`)
}
