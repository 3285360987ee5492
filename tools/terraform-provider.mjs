// Terraform's AWS provider, which validates the files of `setup aws --terraform`: the real one when `terraform init` can download it,
// otherwise a stand-in that serves its schema (tools/terraform-provider), in Crucible's cache as a mirror that needs no network. Without
// either, their tests are skipped, with a message.
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from './run.mjs'

/** The version of schema.json. */
export const VERSION = '6.25.0'
/** Otherwise Terraform checks for new versions, and stores the result in the user's home. */
const TERRAFORM_ENVIRONMENT = { ...process.env, CHECKPOINT_DISABLE: '1' }
const MODULE = fileURLToPath(new URL('./terraform-provider', import.meta.url))
const PACKAGES = join('registry.terraform.io', 'hashicorp', 'aws', VERSION)
const INIT_LIMIT_MS = 10 * 60_000
const WANTED = `terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "${VERSION}"
    }
  }
}
`

/** The real provider comes before the stand-in. */
function folders(home) {
  const digest = createHash('sha256')
  for (const name of readdirSync(MODULE).sort()) digest.update(readFileSync(join(MODULE, name)))
  const cache = join(home, 'cache', 'terraform-provider')
  return [join(cache, `real-${VERSION}`), join(cache, `stand-in-${digest.digest('hex').slice(0, 16)}`)]
}

/** Returns the mirror's folder, `undefined` if it does not exist. */
export function findTerraformProvider(home) {
  return folders(home).find(isWhole)
}

/** Terraform creates links into the user's mirrors, which may be gone. */
function isWhole(folder) {
  const packages = join(folder, PACKAGES)
  return (
    existsSync(packages) && readdirSync(packages).every((platform) => existsSync(join(packages, platform)))
  )
}

/** Returns the mirror's folder, and creates it when missing. `build` makes an executable of a folder with a Go module. */
export async function getTerraformProvider({ home, say, build }) {
  const found = findTerraformProvider(home)
  if (found !== undefined) return found
  let platform
  try {
    platform = JSON.parse(
      await run('terraform', ['version', '-json'], { env: TERRAFORM_ENVIRONMENT }),
    ).platform
  } catch (error) {
    say(`There is no terraform (${error.message}), so the tests of the files for it are skipped`)
    return undefined
  }
  const [real, standIn] = folders(home)
  try {
    say(`Getting Terraform's provider of AWS ${VERSION} for the tests, a large file, once`)
    return await made(real, initialise)
  } catch (error) {
    say(
      `Terraform's provider of AWS cannot be had (${error.message}), so a stand-in with its schema is built`,
    )
  }
  try {
    return await made(standIn, (folder) =>
      build(MODULE, join(folder, PACKAGES, platform, `terraform-provider-aws_v${VERSION}`)),
    )
  } catch (error) {
    say(`Neither can the stand-in be built, so the tests with it are skipped: ${error.message}`)
    return undefined
  }
}

/** The folder appears only when it is complete. */
async function made(folder, make) {
  const unfinished = `${folder}-${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  try {
    await make(unfinished)
    if (!isWhole(unfinished)) throw new Error('Terraform put it elsewhere')
    // Another set-up may have finished first.
    if (isWhole(folder)) return folder
    rmSync(folder, { recursive: true, force: true })
    renameSync(unfinished, folder)
    return folder
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/** Terraform's cache of providers has the form of a mirror. */
async function initialise(cache) {
  const scratch = mkdtempSync(join(tmpdir(), 'crucible-terraform-'))
  try {
    writeFileSync(join(scratch, 'main.tf'), WANTED)
    await run('terraform', ['init', '-backend=false', '-input=false', '-no-color'], {
      cwd: scratch,
      env: { ...TERRAFORM_ENVIRONMENT, TF_PLUGIN_CACHE_DIR: cache },
      timeout: INIT_LIMIT_MS,
    })
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
