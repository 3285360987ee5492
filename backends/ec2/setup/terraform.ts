/** The Terraform module of deploy/terraform, with the values of one set-up. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { deployFolder } from './stack'

/** Variables of the module that have no default, or differ from it. */
export interface TerraformValues {
  prefix: string
  /** The Region of the store first. */
  regions: readonly string[]
  /** Terraform asks for it if it is missing. */
  bucket?: string
  create_spot_role: boolean
  workers_may_buy: boolean
  permissions_boundary?: string
  kms_key_arn?: string
  disk_key_arns?: readonly string[]
  role_path?: string
  /** By Region: an existing network, or the zones of a new one. */
  networks: Record<string, { vpc_id: string } | { zones: string[] }>
}

/** The files of the module by name, and the values in `terraform.tfvars.json`, which Terraform reads without being asked. */
export function terraformFiles(values: TerraformValues): Record<string, string> {
  const folder = join(deployFolder(), 'terraform')
  const names = readdirSync(folder).filter((name) => name.endsWith('.tf'))
  return {
    ...Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')])),
    'terraform.tfvars.json': `${JSON.stringify(values, undefined, 2)}\n`,
  }
}
