import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { awsClients } from './aws-clients'

/** Blocks of Terraform's language by kind; a labelled block is an object in an object. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- blocks of any kind
export type Blocks = Record<string, any[]>

const { python } = awsClients()

/** Whether there is a parser of Terraform's language. */
export const hasTerraformParser =
  python !== undefined && spawnSync(python, ['-c', 'import hcl2']).status === 0

/** Whether there is a terraform on PATH, which formats files without any provider. */
export const hasTerraform = spawnSync('terraform', ['version'], { env: quiet() }).status === 0

/** Reads the files of a folder. */
export function readTerraform(folder: string): Blocks {
  const program = join(__dirname, 'python', 'read_terraform.py')
  const { status, stdout, stderr } = spawnSync(python!, [program, folder], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as Blocks
}

/** What `terraform fmt` would change in a folder. */
export function unformatted(folder: string): string {
  const { status, stdout, stderr } = spawnSync('terraform', ['fmt', '-check', '-diff', '-no-color', folder], {
    env: quiet(),
    encoding: 'utf8',
  })
  return status === 0 ? stdout : stdout + stderr
}

/** Otherwise Terraform checks for new versions, and stores the result in the user's home. */
function quiet(): NodeJS.ProcessEnv {
  return { ...process.env, CHECKPOINT_DISABLE: '1' }
}
