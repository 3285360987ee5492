import { resolve } from 'node:path'
import type { Command } from 'commander'
import { downloadArtifacts, listArtifacts } from '../../client/artifacts'
import { findJob } from '../../client/find-job'
import type { Cli } from '../cli'
import { examples } from '../examples'
import { bytes, NOTHING, plural } from '../words'

export function define(command: Command, cli: Cli): void {
  command
    .description('List what a job left, or copy it into a folder.')
    .argument('<job>', 'id, beginning of an id, or name')
    .option('--download <folder>', 'copy everything there; files that are there already are replaced')
    .addHelpText(
      'after',
      examples(
        ['crucible artifacts char-lm', 'list them'],
        ['crucible artifacts job-3f --download results', 'copy them to results/'],
      ),
    )
    .action((job: string, options: { download?: string }) => artifacts(cli, job, options.download))
}

async function artifacts(cli: Cli, meant: string, folder: string | undefined): Promise<void> {
  const { out } = cli
  const context = cli.context()
  const id = await findJob(context, meant)
  const target = folder === undefined ? undefined : resolve(folder)
  const found =
    target === undefined ? await listArtifacts(context, id) : await downloadArtifacts(context, id, target)
  out.json({ id, artifacts: found, ...(target === undefined ? {} : { folder: target }) })
  if (found.length === 0) return out.line(`${id} has left nothing so far.`)
  out.table(
    ['PATH', 'SIZE', 'SHA-256'],
    found.map(({ path, sizeBytes, sha256 }) => [path, bytes(sizeBytes), sha256?.slice(0, 12) ?? NOTHING]),
    ['SIZE'],
  )
  if (target !== undefined) out.line(`${plural(found.length, 'file')} copied to ${target} and compared.`)
}
