import os
import shutil
import subprocess
import sys
import sysconfig
import unittest
import zipfile

from support import FolderTest

from crucible_runner.process.own_python import make_own_python

SYSTEM = "/usr/bin:/bin"


def marker_of(python):
    code = 'import sysconfig; print(sysconfig.get_path("stdlib") + "/EXTERNALLY-MANAGED")'
    found = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, universal_newlines=True)
    return found.stdout.strip()


class OwnPythonTest(FolderTest):
    def managed_python(self):
        """A copy of this Python whose packages belong to the system, and whose packages lack what pip needs to replace them."""
        version = "python%d.%d" % sys.version_info[:2]
        library = self.at("system", "lib", version)
        os.makedirs(library)
        for name in os.listdir(sysconfig.get_path("stdlib")):
            if name != "EXTERNALLY-MANAGED":
                os.symlink(os.path.join(sysconfig.get_path("stdlib"), name), os.path.join(library, name))
        self.write("system/lib/%s/EXTERNALLY-MANAGED" % version, "[externally-managed]\nError=installed by the system\n")
        os.makedirs(self.at("system", "bin"))
        shutil.copy(os.path.realpath(sys.executable), self.at("system", "bin", "python3"))
        return self.at("system", "bin")

    def wheel(self, name, version):
        path = self.at("%s-%s-py3-none-any.whl" % (name, version))
        about = "%s-%s.dist-info/" % (name, version)
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name + ".py", 'version = "%s"\ndef main(): print(version)\n' % version)
            file.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name, version))
            file.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(about + "entry_points.txt", "[console_scripts]\nsay-%s = %s:main\n" % (name, name))
            file.writestr(about + "RECORD", "")
        return path

    def run_shell(self, text, path):
        environment = {"PATH": path + ":" + SYSTEM, "HOME": self.folder, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        command = ["sh", "-ec", text]
        return subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
        )

    def test_pip_installs_where_the_system_manages_its_python(self):
        wheel = self.wheel("crucible_sample", "1.5")
        folders = {"a copy": self.managed_python()}
        if os.path.exists(marker_of("/usr/bin/python3")):
            folders["this system"] = "/usr/bin"
        for name, system in folders.items():
            with self.subTest(name):
                refused = self.run_shell("python3 -m pip install " + wheel, system)
                self.assertIn("externally-managed-environment", refused.stdout)
                own = self.at("own of " + name)
                os.makedirs(own)
                self.assertIsNone(make_own_python(own, {"PATH": system + ":" + SYSTEM}))
                path = own + "/bin:" + system
                for program in ("pip", "pip3", "python -m pip", "python3 -m pip"):
                    done = self.run_shell(
                        "%s install %s; say-crucible_sample; python3 -c 'import crucible_sample, pip'; %s uninstall -y crucible_sample"
                        % (program, wheel, program),
                        path,
                    )
                    self.assertEqual(done.returncode, 0, done.stdout)
                    self.assertIn("\n1.5\n", done.stdout)

    def test_other_pythons_get_no_environment(self):
        own = self.at("own")
        os.makedirs(own)
        usual = os.path.dirname(self.managed_python())
        os.remove(os.path.join(usual, "lib", "python%d.%d" % sys.version_info[:2], "EXTERNALLY-MANAGED"))
        for path in (os.path.join(usual, "bin"), self.at("absent")):
            self.assertIsNone(make_own_python(own, {"PATH": path}))
            self.assertEqual(os.listdir(own), [])
        managed = marker_of(os.path.join(usual, "bin", "python3"))
        open(managed, "w").close()
        first = self.at("first")
        os.makedirs(first)
        self.assertIsNone(make_own_python(first, {"PATH": usual + "/bin"}))
        self.assertIsNone(make_own_python(own, {"PATH": first + "/bin:" + usual + "/bin"}))
        self.assertEqual(os.listdir(own), [], "a virtual environment is already one of the job's own")

    def test_tells_why_it_cannot_be_made_and_leaves_nothing(self):
        self.write("bin/python3", "#!/bin/sh\nmkdir -p $3/bin\necho no venv >&2\nexit 1\n")
        os.chmod(self.at("bin", "python3"), 0o755)
        own = self.at("own")
        os.makedirs(own)
        self.assertEqual(make_own_python(own, {"PATH": self.at("bin") + ":" + SYSTEM}), "no venv")
        self.assertEqual(os.listdir(own), [])


if __name__ == "__main__":
    unittest.main()
