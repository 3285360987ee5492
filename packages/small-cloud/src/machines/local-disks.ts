/** The local NVMe disks of a machine, as far as its programs see them. */
import { rmSync, writeFileSync } from 'node:fs'
import type { Disk } from './disk'

/** Folder that a machine sees as /sys/block. */
export const BLOCK_DEVICES = 'sys-block'
/** The programs that know such disks (`programs/local_disks.py`). */
export const DISK_PROGRAMS = ['mdadm', 'mkfs.ext4', 'mount']
/** Folder in which the programs keep the content of the disks. */
const CONTENT = '/run/local-disks'
const SECTOR_BYTES = 512
const MODEL = 'Amazon EC2 NVMe Instance Storage'

/** Makes the disks anew: their content ends with a stop, and a boot finds them empty. */
export function makeLocalDisks(disk: Disk, { count, sizeGb }: { count: number; sizeGb: number }): void {
  for (const folder of [BLOCK_DEVICES, CONTENT]) rmSync(disk.on(folder), { recursive: true, force: true })
  // The root disk comes first.
  const models = ['Amazon Elastic Block Store', ...Array.from({ length: count }, () => MODEL)]
  models.forEach((model, at) => {
    const folder = `/${BLOCK_DEVICES}/nvme${at}n1`
    const files = {
      'device/model': `${model.padEnd(40)}\n`,
      size: `${Math.floor((sizeGb * 1e9) / SECTOR_BYTES)}\n`,
      dev: `259:${at}\n`,
    }
    for (const name of ['device', 'holders']) disk.make(`${folder}/${name}`)
    for (const [name, content] of Object.entries(files)) {
      writeFileSync(disk.on(`${folder}/${name}`), content)
      disk.own(disk.on(`${folder}/${name}`))
    }
  })
}
