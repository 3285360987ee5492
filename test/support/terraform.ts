import { execFileSync, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { testFolder } from './folders'

const MODULE = pathToFileURL(join(__dirname, '../../tools/terraform-provider.mjs')).href

/** Whether there is a terraform on PATH. */
export const hasTerraform = runTerraform(['version']).status === 0

export function runTerraform(
  words: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): { status: number | null; output: string } {
  // Else it asks for news of itself, and keeps that in the user's home.
  const quiet = { ...env, CHECKPOINT_DISABLE: '1' }
  const { status, stdout, stderr } = spawnSync('terraform', words, { env: quiet, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

/** Runs Terraform in a folder with the provider of AWS that set-up got, and no other; `undefined` where set-up got none. */
export function terraformIn(): Terraform | undefined {
  const home = process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
  const find = `const { findTerraformProvider } = await import(${JSON.stringify(MODULE)})
    console.log(findTerraformProvider(${JSON.stringify(home)}) ?? '')`
  const asked = ['--input-type=module', '-e', find]
  const mirror = execFileSync(process.execPath, asked, { encoding: 'utf8' }).trim()
  if (!hasTerraform || mirror === '') return undefined
  const config = join(testFolder('terraformrc'), 'terraformrc')
  writeFileSync(
    config,
    `provider_installation {\n  filesystem_mirror {\n    path = ${JSON.stringify(mirror)}\n  }\n}\n`,
  )
  const env = { ...process.env, TF_CLI_CONFIG_FILE: config }
  return (folder, ...words) => runTerraform([`-chdir=${folder}`, ...words, '-no-color'], env)
}

export type Terraform = (folder: string, ...words: string[]) => ReturnType<typeof runTerraform>
